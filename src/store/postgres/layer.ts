/** The core's ports of the store, kept in Postgres. `src/assembly/database.ts` adds those of the features. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { StoreHealth } from "../ports/health.ts";
import * as Accounts from "./people/accounts.ts";
import * as Admissions from "./triggers/admissions.ts";
import * as Audit from "./audit.ts";
import * as BrowserSessions from "./people/browser-sessions.ts";
import * as CloneCredentials from "./sessions/clone-credentials.ts";
import * as ConnectorGrants from "./connectors/connector-grants.ts";
import * as Connectors from "./connectors/connectors.ts";
import * as Conversations from "./conversations/conversations.ts";
import * as Counters from "./triggers/counters.ts";
import * as Endings from "./connection/endings.ts";
import * as EventLog from "./events/event-log.ts";
import * as DeviceLogins from "./people/device-logins.ts";
import * as Suspensions from "./connectors/suspensions.ts";
import * as EnvironmentBases from "./projects/environment-bases.ts";
import * as EnvironmentBuilds from "./projects/environment-builds.ts";
import * as Events from "./events/events.ts";
import * as ExecutorCalls from "./connectors/executor-calls.ts";
import * as Fires from "./triggers/fires.ts";
import * as Identities from "./people/identities.ts";
import * as Identity from "./people/identity.ts";
import * as Nodes from "./nodes.ts";
import * as Operations from "./operations.ts";
import * as Pauses from "./pauses.ts";
import * as People from "./people/people.ts";
import * as Previews from "./sessions/previews.ts";
import * as ProjectChanges from "./projects/project-changes.ts";
import * as ProjectDeletions from "./projects/project-deletions.ts";
import * as ProjectUsage from "./projects/project-usage.ts";
import * as Projects from "./projects/projects.ts";
import * as Sandboxes from "./sessions/sandboxes.ts";
import * as Secrets from "./projects/secrets.ts";
import * as SessionLogs from "./sessions/session-logs.ts";
import * as Sessions from "./sessions/sessions.ts";
import * as Transitions from "./events/transitions.ts";
import * as Uploads from "./sessions/uploads.ts";
import * as WarmSandboxes from "./sessions/warm-sandboxes.ts";
import * as WebhookRefusals from "./triggers/webhook-refusals.ts";
import { DatabasePulse } from "./connection/pulse.ts";
import { toStored } from "./connection/statement.ts";

const healthLayer = Layer.effect(
  StoreHealth,
  Effect.map(Effect.all([SqlClient.SqlClient, DatabasePulse]), ([sql, pulse]) => ({
    ping: sql`SELECT 1`.pipe(Effect.asVoid, toStored("health.ping")),
    state: Effect.sync(() => ({ writes: pulse.writes, notifies: pulse.notifies })),
  })),
);

/** Needs a migrated database: `client.ts` or `embedded.ts` provide the client, `migrate.ts` the schema. */
export const coreStore = Layer.mergeAll(
  Accounts.layer,
  Admissions.layer,
  Audit.layer,
  BrowserSessions.layer,
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
  Previews.layer,
  ProjectDeletions.layer,
  ProjectUsage.layer,
  Projects.layer,
  Sandboxes.layer,
  Secrets.layer,
  SessionLogs.layer,
  Sessions.layer,
  Transitions.layer,
  Uploads.layer,
  WarmSandboxes.layer,
  WebhookRefusals.layer,
  healthLayer,
);

/** What the statements of the store share. */
export const storeParts = Layer.mergeAll(Endings.layer, EventLog.layer, ProjectChanges.layer);
