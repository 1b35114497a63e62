/** The core's ports of the store, as one type. `src/database.ts` adds those of the features. */
import type { Accounts } from "./accounts.ts";
import type { Admissions } from "./admissions.ts";
import type { Audit } from "./audit.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import type { CloneCredentials } from "./clone-credentials.ts";
import type { ConnectorGrants } from "./connector-grants.ts";
import type { Connectors } from "./connectors.ts";
import type { Conversations } from "./conversations.ts";
import type { Counters } from "./counters.ts";
import type { DeviceLogins } from "./device-logins.ts";
import type { Suspensions } from "./suspensions.ts";
import type { EnvironmentBases } from "./environment-bases.ts";
import type { EnvironmentBuilds } from "./environment-builds.ts";
import type { Events } from "./events.ts";
import type { ExecutorCalls } from "./executor-calls.ts";
import type { Fires } from "./fires.ts";
import type { StoreHealth } from "./health.ts";
import type { Identities } from "./identities.ts";
import type { Identity } from "./identity.ts";
import type { Nodes } from "./nodes.ts";
import type { Operations } from "./operations.ts";
import type { Pauses } from "./pauses.ts";
import type { People } from "./people.ts";
import type { Previews } from "./previews.ts";
import type { ProjectUsage } from "./project-usage.ts";
import type { Projects } from "./projects.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { Secrets } from "./secrets.ts";
import type { SessionLogs } from "./session-logs.ts";
import type { Sessions } from "./sessions.ts";
import type { Transitions } from "./transitions.ts";
import type { WarmSandboxes } from "./warm-sandboxes.ts";
import type { WebhookRefusals } from "./webhook-refusals.ts";

export type CoreStore =
  | Accounts
  | Admissions
  | Audit
  | BrowserSessions
  | CloneCredentials
  | ConnectorGrants
  | Connectors
  | Conversations
  | Counters
  | DeviceLogins
  | Suspensions
  | EnvironmentBases
  | EnvironmentBuilds
  | Events
  | ExecutorCalls
  | Fires
  | Identities
  | Identity
  | Nodes
  | Operations
  | Pauses
  | People
  | Previews
  | ProjectUsage
  | Projects
  | Sandboxes
  | Secrets
  | SessionLogs
  | Sessions
  | StoreHealth
  | Transitions
  | WarmSandboxes
  | WebhookRefusals;
