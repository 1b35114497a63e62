/** The core's endpoints. A feature's are in its folder. */
import * as Layer from "effect/Layer";
import { auditHandlers } from "./audit.ts";
import { conversationHandlers } from "./conversation.ts";
import { deviceLoginHandlers } from "./device-logins.ts";
import { firesHandlers } from "./fires.ts";
import { identityHandlers } from "./identity.ts";
import { machinesHandlers } from "./machines.ts";
import { messagesHandlers } from "./messages.ts";
import { operatorHandlers } from "./operator.ts";
import { peopleHandlers } from "./people.ts";
import { projectsHandlers } from "./projects.ts";
import { sandboxHandlers } from "./sandbox.ts";
import { secretsHandlers } from "./secrets.ts";
import { sessionsHandlers } from "./sessions.ts";
import { triggersHandlers } from "./triggers.ts";
import { webhookRefusalsHandlers } from "./webhook-refusals.ts";

export const coreHandlers = Layer.mergeAll(
  auditHandlers,
  conversationHandlers,
  deviceLoginHandlers,
  firesHandlers,
  identityHandlers,
  machinesHandlers,
  messagesHandlers,
  operatorHandlers,
  peopleHandlers,
  projectsHandlers,
  sandboxHandlers,
  secretsHandlers,
  sessionsHandlers,
  triggersHandlers,
  webhookRefusalsHandlers,
);
