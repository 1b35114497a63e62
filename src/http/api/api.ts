/** The platform's HTTP API: definitions only, shared by server, clients and the OpenAPI document. */
import { HttpApi, OpenApi } from "effect/http-api";
import { ApprovalsGroup } from "./approvals.ts";
import { AuditGroup } from "./audit.ts";
import { ChangeRequestsGroup } from "./change-requests.ts";
import { ConnectorsGroup } from "./connectors.ts";
import { ConversationGroup } from "./conversation.ts";
import { DeviceLoginsGroup } from "./device-logins.ts";
import { EnvironmentsGroup } from "./environments.ts";
import { FiresGroup } from "./fires.ts";
import { IdentityGroup } from "./identity.ts";
import { completeDocument } from "./openapi.ts";
import { MachinesGroup } from "./machines.ts";
import { MessagesGroup } from "./messages.ts";
import { OperatorGroup } from "./operator.ts";
import { PeopleGroup } from "./people.ts";
import { OutboundWebhooksGroup } from "./outbound-webhooks.ts";
import { ProjectsGroup } from "./projects.ts";
import { SandboxGroup } from "./sandbox.ts";
import { SecretsGroup } from "./secrets.ts";
import { SessionsGroup } from "./sessions.ts";
import { TriggerWishesGroup } from "./trigger-wishes.ts";
import { TriggersGroup } from "./triggers.ts";
import { WebhookRefusalsGroup } from "./webhook-refusals.ts";

export class Api extends HttpApi.make("platform")
  .add(IdentityGroup)
  .add(DeviceLoginsGroup)
  .add(PeopleGroup)
  .add(AuditGroup)
  .add(ProjectsGroup)
  .add(SessionsGroup)
  .add(ConversationGroup)
  .add(MessagesGroup)
  .add(SecretsGroup)
  .add(ConnectorsGroup)
  .add(ApprovalsGroup)
  .add(TriggersGroup)
  .add(TriggerWishesGroup)
  .add(FiresGroup)
  .add(WebhookRefusalsGroup)
  .add(OutboundWebhooksGroup)
  .add(ChangeRequestsGroup)
  .add(EnvironmentsGroup)
  .add(MachinesGroup)
  .add(SandboxGroup)
  .add(OperatorGroup)
  // An unknown field is the caller's mistake and is refused (api.md 1, threats.md T06). Unknown headers are allowed.
  .annotate(HttpApi.ParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.HeadersParseOptions, {})
  .annotateMerge(
    OpenApi.annotations({
      title: "Platform API",
      version: "1",
      description: "Run coding agents in sandboxes, and start them with triggers.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      transform: completeDocument,
    }),
  ) {}
