/** How the store's conformance suite runs a test: each on its own store. support/world has the functions that fill it. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import type { Admissions } from "../../src/store/ports/admissions.ts";
import type { Approvals } from "../../src/store/ports/approvals.ts";
import type { CloneCredentials } from "../../src/store/ports/clone-credentials.ts";
import type { EnvironmentBuilds } from "../../src/store/ports/environment-builds.ts";
import { Events } from "../../src/store/ports/events.ts";
import type { Fires } from "../../src/store/ports/fires.ts";
import type { StoreHealth } from "../../src/store/ports/health.ts";
import type { BrowserSessions } from "../../src/store/ports/browser-sessions.ts";
import type { Identities } from "../../src/store/ports/identities.ts";
import type { Identity } from "../../src/store/ports/identity.ts";
import type { Projects } from "../../src/store/ports/projects.ts";
import type { Sandboxes } from "../../src/store/ports/sandboxes.ts";
import type { Sessions } from "../../src/store/ports/sessions.ts";
import { type Secrets } from "../../src/store/ports/secrets.ts";
import type { ConnectorGrants } from "../../src/store/ports/connector-grants.ts";
import type { Connectors } from "../../src/store/ports/connectors.ts";
import type { ExecutorCalls } from "../../src/store/ports/executor-calls.ts";
import type { Conversations } from "../../src/store/ports/conversations.ts";
import type { Counters } from "../../src/store/ports/counters.ts";
import { type ChangeRequests } from "../../src/store/ports/change-requests.ts";
import type { Accounts } from "../../src/store/ports/accounts.ts";
import type { Nodes } from "../../src/store/ports/nodes.ts";
import type { Operations } from "../../src/store/ports/operations.ts";
import type { People } from "../../src/store/ports/people.ts";
import type { OutboundDeliveries } from "../../src/store/ports/outbound-deliveries.ts";
import type { OutboundWebhooks } from "../../src/store/ports/outbound-webhooks.ts";
import type { Previews } from "../../src/store/ports/previews.ts";
import type { ProjectUsage } from "../../src/store/ports/project-usage.ts";
import type { SessionLogs } from "../../src/store/ports/session-logs.ts";
import type { Transitions } from "../../src/store/ports/transitions.ts";
import type { WebhookRefusals } from "../../src/store/ports/webhook-refusals.ts";

export type Store =
  | Accounts
  | Admissions
  | Approvals
  | BrowserSessions
  | ChangeRequests
  | CloneCredentials
  | ConnectorGrants
  | Connectors
  | Conversations
  | Counters
  | EnvironmentBuilds
  | Events
  | ExecutorCalls
  | Fires
  | Identities
  | Identity
  | Nodes
  | Operations
  | People
  | OutboundDeliveries
  | OutboundWebhooks
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

export type StoreLayer = Layer.Layer<Store, unknown>;

/** Registers a test that runs on its own store. */
export type Check = <E>(name: string, test: Effect.Effect<void, E, Store>) => void;

export const checkWith =
  (layer: StoreLayer): Check =>
  (name, test) => {
    // A new layer each time, so that tests do not see each other's data.
    it.live(name, () => Effect.provide(test, layer, { local: true }));
  };

/**
 * Follows the events of one type in a session.
 * @returns a function that reads the later ones, once at least `expected` of them can be read
 */
export const followSession = Effect.fnUntraced(function* (
  place: { readonly projectId: string; readonly sessionId: string },
  type: string,
) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ ...place, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (expected: number) =>
    // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
    read(cursor).pipe(
      Effect.map(({ events }) => events.filter((event) => event.type === type)),
      Effect.repeat({
        until: (events) => events.length >= expected,
        schedule: Schedule.spaced("10 millis"),
      }),
    );
});
