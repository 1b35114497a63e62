/** All commands that call the service, in the order of the help. */
import type { Command } from "../cli/command.ts";
import { activityCommands } from "../features/activity/commands.ts";
import { approvalCommands } from "../features/approvals/commands.ts";
import { auditCommands } from "../cli/commands/audit.ts";
import { completion } from "../cli/commands/completion.ts";
import { changeRequestCommands } from "../features/change-requests/commands.ts";
import { connectorCommands } from "../features/connectors/commands.ts";
import { environmentCommands } from "../features/environments/commands.ts";
import { gitCredential } from "../cli/commands/git-credential.ts";
import { init } from "../cli/commands/init.ts";
import { spendCommands } from "../features/spend/commands.ts";
import { modelCommands } from "../features/model-providers/commands.ts";
import { subscriptionCommands } from "../features/subscriptions/commands.ts";
import { open } from "../cli/commands/page.ts";
import { peopleCommands } from "../cli/commands/people.ts";
import { projectCommands } from "../cli/commands/projects.ts";
import { secretCommands } from "../cli/commands/secrets.ts";
import { sessionCommands } from "../cli/commands/sessions/sessions.ts";
import { sshCommands } from "../cli/commands/ssh/commands.ts";
import { tokenCommands } from "../cli/commands/tokens.ts";
import { triggerCommands } from "../cli/commands/triggers.ts";
import { newTriggerCommands } from "../cli/commands/new-trigger.ts";
import { noticeCommands, webhookCommands } from "../features/notifications/commands.ts";

export const commands: readonly Command[] = [
  ...changeRequestCommands,
  ...sessionCommands,
  ...sshCommands,
  ...triggerCommands,
  ...newTriggerCommands,
  ...webhookCommands,
  ...secretCommands,
  ...connectorCommands,
  ...approvalCommands,
  ...activityCommands,
  ...environmentCommands,
  ...projectCommands,
  ...modelCommands,
  ...subscriptionCommands,
  ...noticeCommands,
  ...spendCommands,
  ...peopleCommands,
  ...auditCommands,
  ...tokenCommands,
  init,
  open,
  completion,
  gitCredential,
];
