/** All ports of the store, as one type: what both adapters provide, and what the service needs of either. */
import type { Accounts } from "./ports/accounts.ts";
import type { Admissions } from "./ports/admissions.ts";
import type { Approvals } from "./ports/approvals.ts";
import type { BrowserSessions } from "./ports/browser-sessions.ts";
import type { ChangeRequests } from "./ports/change-requests.ts";
import type { CloneCredentials } from "./ports/clone-credentials.ts";
import type { Connectors } from "./ports/connectors.ts";
import type { Conversations } from "./ports/conversations.ts";
import type { Counters } from "./ports/counters.ts";
import type { DeviceLogins } from "./ports/device-logins.ts";
import type { EnvironmentBuilds } from "./ports/environment-builds.ts";
import type { Events } from "./ports/events.ts";
import type { ExecutorCalls } from "./ports/executor-calls.ts";
import type { Fires } from "./ports/fires.ts";
import type { StoreHealth } from "./ports/health.ts";
import type { Identities } from "./ports/identities.ts";
import type { Identity } from "./ports/identity.ts";
import type { Nodes } from "./ports/nodes.ts";
import type { Operations } from "./ports/operations.ts";
import type { OutboundDeliveries } from "./ports/outbound-deliveries.ts";
import type { OutboundWebhooks } from "./ports/outbound-webhooks.ts";
import type { People } from "./ports/people.ts";
import type { Previews } from "./ports/previews.ts";
import type { ProjectUsage } from "./ports/project-usage.ts";
import type { Projects } from "./ports/projects.ts";
import type { Sandboxes } from "./ports/sandboxes.ts";
import type { Secrets } from "./ports/secrets.ts";
import type { SessionLogs } from "./ports/session-logs.ts";
import type { Sessions } from "./ports/sessions.ts";
import type { Transitions } from "./ports/transitions.ts";
import type { WebhookRefusals } from "./ports/webhook-refusals.ts";

export type Store =
  | Accounts
  | Admissions
  | Approvals
  | BrowserSessions
  | ChangeRequests
  | CloneCredentials
  | Connectors
  | Conversations
  | Counters
  | DeviceLogins
  | EnvironmentBuilds
  | Events
  | ExecutorCalls
  | Fires
  | Identities
  | Identity
  | Nodes
  | Operations
  | OutboundDeliveries
  | OutboundWebhooks
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
  | WebhookRefusals;
