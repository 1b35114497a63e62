/** Every service of the store's port, in this process's memory: the twin for tests and simulations. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { StoreHealth } from "../../../src/store/ports/health.ts";
import * as Accounts from "./accounts.ts";
import * as Activity from "./activity.ts";
import * as Admissions from "./admissions.ts";
import * as Approvals from "./approvals.ts";
import * as Audit from "./audit.ts";
import * as BrowserSessions from "./browser-sessions.ts";
import * as ChangeRequests from "./change-requests.ts";
import * as CloneCredentials from "./clone-credentials.ts";
import * as ConnectorGrants from "./connector-grants.ts";
import * as Connectors from "./connectors.ts";
import * as Conversations from "./conversations.ts";
import * as Counters from "./counters.ts";
import * as DeviceLogins from "./device-logins.ts";
import * as Suspensions from "./suspensions.ts";
import * as EnvironmentBases from "./environment-bases.ts";
import * as EnvironmentBuilds from "./environment-builds.ts";
import * as Events from "./events.ts";
import * as ExecutorCalls from "./executor-calls.ts";
import * as Fires from "./fires.ts";
import * as Identities from "./identities.ts";
import * as Identity from "./identity.ts";
import * as Nodes from "./nodes.ts";
import * as Operations from "./operations.ts";
import * as Pauses from "./pauses.ts";
import * as People from "./people.ts";
import * as ModelProviders from "./model-providers.ts";
import * as OutboundDeliveries from "./outbound-deliveries.ts";
import * as OutboundWebhooks from "./outbound-webhooks.ts";
import * as OwnReceivers from "./own-receivers.ts";
import * as Previews from "./previews.ts";
import * as ProjectDeletions from "./project-deletions.ts";
import * as ProjectUsage from "./project-usage.ts";
import * as Projects from "./projects.ts";
import * as Remarks from "./remarks.ts";
import * as Reviewers from "./reviewers.ts";
import * as Sandboxes from "./sandboxes.ts";
import * as Secrets from "./secrets.ts";
import * as SessionLogs from "./session-logs.ts";
import * as Sessions from "./sessions.ts";
import * as Spend from "./spend.ts";
import * as Subscriptions from "./subscriptions.ts";
import * as Transitions from "./transitions.ts";
import * as WarmSandboxes from "./warm-sandboxes.ts";
import * as Uploads from "./uploads.ts";
import * as WebhookRefusals from "./webhook-refusals.ts";
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
