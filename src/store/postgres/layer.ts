/** The core's ports of the store, kept in Postgres. `src/database.ts` adds those of the features. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { StoreHealth } from "../ports/health.ts";
import * as Accounts from "./accounts.ts";
import * as Admissions from "./admissions.ts";
import * as Audit from "./audit.ts";
import * as BrowserSessions from "./browser-sessions.ts";
import * as CloneCredentials from "./clone-credentials.ts";
import * as ConnectorGrants from "./connector-grants.ts";
import * as Connectors from "./connectors.ts";
import * as Conversations from "./conversations.ts";
import * as Counters from "./counters.ts";
import * as Endings from "./connection/endings.ts";
import * as EventLog from "./event-log.ts";
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
import * as Previews from "./previews.ts";
import * as ProjectChanges from "./project-changes.ts";
import * as ProjectUsage from "./project-usage.ts";
import * as Projects from "./projects.ts";
import * as Sandboxes from "./sandboxes.ts";
import * as Secrets from "./secrets.ts";
import * as SessionLogs from "./session-logs.ts";
import * as Sessions from "./sessions.ts";
import * as Transitions from "./transitions.ts";
import * as WarmSandboxes from "./warm-sandboxes.ts";
import * as WebhookRefusals from "./webhook-refusals.ts";
import { DatabasePulse } from "./connection/pulse.ts";
import { stored } from "./connection/statement.ts";

const healthLayer = Layer.effect(
  StoreHealth,
  Effect.map(Effect.all([SqlClient.SqlClient, DatabasePulse]), ([sql, pulse]) => ({
    ping: sql`SELECT 1`.pipe(Effect.asVoid, stored("health.ping")),
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
  ProjectUsage.layer,
  Projects.layer,
  Sandboxes.layer,
  Secrets.layer,
  SessionLogs.layer,
  Sessions.layer,
  Transitions.layer,
  WarmSandboxes.layer,
  WebhookRefusals.layer,
  healthLayer,
);

/** What the statements of the store share. */
export const storeParts = Layer.mergeAll(Endings.layer, EventLog.layer, ProjectChanges.layer);
