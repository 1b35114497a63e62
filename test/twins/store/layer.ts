/** Every service of the store's port, in this process's memory: the twin for tests and simulations. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { StoreHealth } from "../../../src/store/ports/health.ts";
import * as Accounts from "./people/accounts.ts";
import * as Activity from "./people/activity.ts";
import * as Admissions from "./triggers/admissions.ts";
import * as Approvals from "./sessions/approvals.ts";
import * as Audit from "./people/audit.ts";
import * as BrowserSessions from "./people/browser-sessions.ts";
import * as ChangeRequests from "./projects/change-requests.ts";
import * as CloneCredentials from "./sessions/clone-credentials.ts";
import * as ConnectorGrants from "./projects/connector-grants.ts";
import * as Connectors from "./projects/connectors.ts";
import * as Conversations from "./sessions/conversations.ts";
import * as Counters from "./counters.ts";
import * as DeviceLogins from "./people/device-logins.ts";
import * as Suspensions from "./projects/suspensions.ts";
import * as EnvironmentBases from "./sessions/environment-bases.ts";
import * as EnvironmentBuilds from "./sessions/environment-builds.ts";
import * as Events from "./events.ts";
import * as ExecutorCalls from "./projects/executor-calls.ts";
import * as Fires from "./triggers/fires.ts";
import * as Identities from "./people/identities.ts";
import * as Identity from "./people/identity.ts";
import * as Nodes from "./nodes.ts";
import * as Operations from "./operations.ts";
import * as Pauses from "./triggers/pauses.ts";
import * as People from "./people/people.ts";
import * as ModelProviders from "./projects/model-providers.ts";
import * as OutboundDeliveries from "./triggers/outbound-deliveries.ts";
import * as OutboundWebhooks from "./triggers/outbound-webhooks.ts";
import * as OwnReceivers from "./own-receivers.ts";
import * as Previews from "./sessions/previews.ts";
import * as ProjectDeletions from "./projects/project-deletions.ts";
import * as ProjectUsage from "./projects/project-usage.ts";
import * as Projects from "./projects/projects.ts";
import * as Remarks from "./projects/remarks.ts";
import * as Reviewers from "./projects/reviewers.ts";
import * as Sandboxes from "./sessions/sandboxes.ts";
import * as Secrets from "./projects/secrets.ts";
import * as SessionLogs from "./sessions/session-logs.ts";
import * as Sessions from "./sessions/sessions.ts";
import * as Spend from "./projects/spend.ts";
import * as Subscriptions from "./projects/subscriptions.ts";
import * as Transitions from "./sessions/transitions.ts";
import * as WarmSandboxes from "./sessions/warm-sandboxes.ts";
import * as Uploads from "./sessions/uploads.ts";
import * as WebhookRefusals from "./triggers/webhook-refusals.ts";
import { Tables } from "./tables.ts";

/** The services over tables that a test can inspect. */
export const overTables = Layer.mergeAll(
  Accounts.layer,
  Activity.layer,
  Admissions.layer,
  Approvals.layer,
  Audit.layer,
  BrowserSessions.layer,
  ChangeRequests.layer,
  ModelProviders.layer,
  Subscriptions.layer,
  Remarks.layer,
  Reviewers.layer,
  CloneCredentials.layer,
  ConnectorGrants.layer,
  Connectors.layer,
  Conversations.layer,
  Counters.layer,
  DeviceLogins.layer,
  Suspensions.layer,
  EnvironmentBases.layer,
  EnvironmentBuilds.layer,
  Events.layer,
  ExecutorCalls.layer,
  Fires.layer,
  Identities.layer,
  Identity.layer,
  Nodes.layer,
  Operations.layer,
  Pauses.layer,
  People.layer,
  OutboundDeliveries.layer,
  OutboundWebhooks.layer,
  OwnReceivers.layer,
  Previews.layer,
  ProjectDeletions.layer,
  ProjectUsage.layer,
  Projects.layer,
  Sandboxes.layer,
  Secrets.layer,
  SessionLogs.layer,
  Sessions.layer,
  Spend.layer,
  Transitions.layer,
  WarmSandboxes.layer,
  Uploads.layer,
  WebhookRefusals.layer,
  Layer.succeed(StoreHealth)({ ping: Effect.void, state: Effect.succeed({ writes: true, notifies: true }) }),
);

/** An empty store. Each build of the layer has its own. */
export const memoryStore = overTables.pipe(Layer.provide(Tables.layer));
