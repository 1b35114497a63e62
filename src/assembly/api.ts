/** The platform's HTTP API, joined of its groups: definitions only, shared by server, clients and the OpenAPI document. */
import { OpenApi } from "effect/http-api";
import { ActivityGroup } from "../features/activity/api.ts";
import { ACTIVITY_EXAMPLES } from "../features/activity/examples.ts";
import { ApprovalsGroup } from "../features/approvals/api.ts";
import { AuditGroup } from "../http/api/audit.ts";
import { ChangeRequestsGroup } from "../features/change-requests/api.ts";
import { ConnectorsGroup } from "../features/connectors/api.ts";
import { ConversationGroup } from "../http/api/sessions/conversation.ts";
import { DeviceLoginsGroup } from "../http/api/device-logins.ts";
import { EnvironmentsGroup } from "../features/environments/api.ts";
import { FiresGroup } from "../http/api/triggers/fires.ts";
import { IdentityGroup } from "../http/api/identity.ts";
import { APPROVAL_EXAMPLES } from "../features/approvals/examples.ts";
import { ReviewsGroup } from "../features/change-requests/review-api.ts";
import { CHANGE_REQUEST_EXAMPLES } from "../features/change-requests/examples.ts";
import { CONNECTOR_EXAMPLES } from "../features/connectors/examples.ts";
import { ENVIRONMENT_EXAMPLES } from "../features/environments/examples.ts";
import { CHANGE_REQUEST_TOOLS } from "../features/change-requests/tools.ts";
import { OUTBOUND_EXAMPLES } from "../features/notifications/examples.ts";
import type { Examples, WholeExamples } from "../http/api/examples/example.ts";
import { wholeExamples } from "../http/api/examples/make.ts";
import { OPERATION_EXAMPLES } from "../http/api/examples/operations.ts";
import { NOUNS } from "../http/api/examples/records.ts";
import { completeDocument } from "../http/api/openapi.ts";
import { Platform } from "../http/api/platform.ts";
import { MachinesGroup } from "../http/api/sessions/machines.ts";
import { MessagesGroup } from "../http/api/sessions/messages.ts";
import { OperatorGroup } from "../http/api/operator.ts";
import { PeopleGroup } from "../http/api/people.ts";
import { OutboundWebhooksGroup } from "../features/notifications/api.ts";
import { OwnNoticesGroup } from "../features/notifications/own-api.ts";
import { ModelProvidersGroup } from "../features/model-providers/api.ts";
import { MODEL_PROVIDER_EXAMPLES } from "../features/model-providers/examples.ts";
import { SubscriptionsGroup } from "../features/subscriptions/api.ts";
import { SUBSCRIPTION_EXAMPLES } from "../features/subscriptions/examples.ts";
import { SpendGroup } from "../features/spend/api.ts";
import { SPEND_EXAMPLES } from "../features/spend/examples.ts";
import { ProjectsGroup } from "../http/api/projects.ts";
import { SandboxGroup } from "../http/api/sessions/sandbox.ts";
import { SecretsGroup } from "../http/api/secrets.ts";
import { SessionsGroup } from "../http/api/sessions/sessions.ts";
import { TriggerWishesGroup } from "../features/change-requests/trigger-wishes-api.ts";
import { TriggersGroup } from "../http/api/triggers/triggers.ts";
import { WebhookRefusalsGroup } from "../http/api/triggers/webhook-refusals.ts";
import { SESSION_TOOLS, TRIGGER_TOOLS, type OwnTool } from "../http/raw/own-tools.ts";
import { routeNames } from "../http/route-name.ts";
import { definedRoutes, RAW_ROUTES, type Route, routeMisses, type RouteTable } from "../http/routes.ts";

/** The platform's own tools for agents. */
export const OWN_TOOLS: readonly OwnTool[] = [...SESSION_TOOLS, ...CHANGE_REQUEST_TOOLS, ...TRIGGER_TOOLS];

export class Api extends Platform.add(IdentityGroup)
  .add(DeviceLoginsGroup)
  .add(PeopleGroup)
  .add(ModelProvidersGroup)
  .add(SubscriptionsGroup)
  .add(OwnNoticesGroup)
  .add(SpendGroup)
  .add(AuditGroup)
  .add(ActivityGroup)
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
  .add(ReviewsGroup)
  .add(EnvironmentsGroup)
  .add(MachinesGroup)
  .add(SandboxGroup)
  .add(OperatorGroup)
  .annotateMerge(
    OpenApi.annotations({
      title: "Platform API",
      version: "1",
      description: "Run coding agents in sandboxes, and start them with triggers.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      transform: (document) => completeDocument(examples())(document),
    }),
  ) {}

/** The summaries of all operations, with the parts of their examples that are written by hand. */
export const EXAMPLE_PARTS: readonly Examples[] = [
  { operations: OPERATION_EXAMPLES, nouns: NOUNS },
  ACTIVITY_EXAMPLES,
  APPROVAL_EXAMPLES,
  CHANGE_REQUEST_EXAMPLES,
  CONNECTOR_EXAMPLES,
  ENVIRONMENT_EXAMPLES,
  OUTBOUND_EXAMPLES,
  MODEL_PROVIDER_EXAMPLES,
  SPEND_EXAMPLES,
  SUBSCRIPTION_EXAMPLES,
];

/** The examples of all operations. */
export const examples = (): WholeExamples => wholeExamples(Api, EXAMPLE_PARTS);

export const ROUTES: readonly Route[] = [...definedRoutes(Api), ...RAW_ROUTES];

/** What the listener asks about addresses. */
export const routeTable: RouteTable = { name: routeNames(ROUTES), miss: routeMisses(ROUTES) };

/** The command line and the page take only types from here. */
declare module "../cli/contract.ts" {
  interface Contract {
    readonly api: typeof Api;
  }
}
