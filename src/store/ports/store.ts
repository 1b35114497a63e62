/** The core's ports of the store, as one type. `src/assembly/database.ts` adds those of the features. */
import type { Accounts } from "./people/accounts.ts";
import type { Admissions } from "./triggers/admissions.ts";
import type { Audit } from "./audit.ts";
import type { BrowserSessions } from "./people/browser-sessions.ts";
import type { CloneCredentials } from "./sessions/clone-credentials.ts";
import type { ConnectorGrants } from "./connectors/connector-grants.ts";
import type { Connectors } from "./connectors/connectors.ts";
import type { Conversations } from "./sessions/conversations.ts";
import type { Counters } from "./triggers/counters.ts";
import type { DeviceLogins } from "./people/device-logins.ts";
import type { Suspensions } from "./connectors/suspensions.ts";
import type { EnvironmentBases } from "./projects/environment-bases.ts";
import type { EnvironmentBuilds } from "./projects/environment-builds.ts";
import type { Events } from "./events.ts";
import type { ExecutorCalls } from "./connectors/executor-calls.ts";
import type { Fires } from "./triggers/fires.ts";
import type { StoreHealth } from "./health.ts";
import type { Identities } from "./people/identities.ts";
import type { Identity } from "./people/identity.ts";
import type { Nodes } from "./nodes.ts";
import type { Operations } from "./operations.ts";
import type { Pauses } from "./pauses.ts";
import type { People } from "./people/people.ts";
import type { Previews } from "./sessions/previews.ts";
import type { ProjectDeletions } from "./projects/project-deletions.ts";
import type { ProjectUsage } from "./projects/project-usage.ts";
import type { Projects } from "./projects/projects.ts";
import type { Sandboxes } from "./sessions/sandboxes.ts";
import type { Secrets } from "./projects/secrets.ts";
import type { SessionLogs } from "./sessions/session-logs.ts";
import type { Sessions } from "./sessions/sessions.ts";
import type { Transitions } from "./transitions.ts";
import type { Uploads } from "./sessions/uploads.ts";
import type { WarmSandboxes } from "./sessions/warm-sandboxes.ts";
import type { WebhookRefusals } from "./triggers/webhook-refusals.ts";

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
  | ProjectDeletions
  | ProjectUsage
  | Projects
  | Sandboxes
  | Secrets
  | SessionLogs
  | Sessions
  | StoreHealth
  | Transitions
  | Uploads
  | WarmSandboxes
  | WebhookRefusals;
