/**
 * Sandboxes that wait for a session (docs/decisions/0073-warm-sandboxes.md): who takes one, and who asks for one. The duty
 * `warm_pool` starts and ends them (duties/warm-pool.ts).
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import { waitsAs } from "../../domain/agents/agents.ts";
import { DEFAULT_AGENT } from "../../domain/sandbox/agent.ts";
import { isLive } from "../../domain/session/session.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { WarmSandboxes } from "../../store/ports/sessions/warm-sandboxes.ts";
import { newUuid } from "../entropy.ts";
import { agentsIn, Runtimes } from "../projects/runtimes.ts";

/** How long a sandbox waits for a person who is about to start a session, ms. */
export const WISH_MS = 5 * 60_000;
/** What a waiting sandbox counts for, MiB. */
export const WARM_MB = 600;
/** At most so many projects are asked for between two rounds. */
const WISHES_MAX = 1000;

interface Pool {
  /** How many sandboxes may wait on this node. */
  readonly places: number;
  /**
   * A waiting sandbox for a session that is about to boot. Null if it starts one of its own, because none is ready, or because all
   * wait with another runtime than its agent has. May be repeated.
   */
  readonly claim: (
    session: Pick<Session, "id" | "projectId" | "origin" | "agentName">,
  ) => Effect.Effect<string | null, StoreError>;
  /** A person is about to start a session of the project. False: nothing waits on this node. */
  readonly wish: (projectId: string) => Effect.Effect<boolean>;
  /** Takes what was asked for since the last call: instants until which a sandbox is wanted, by project. */
  readonly wishes: Effect.Effect<ReadonlyMap<string, number>>;
  /** Completes at the next wish. A claim does not count: the next sandbox would start while the session's boots. */
  readonly changed: Effect.Effect<void>;
}

/** Nothing waits unless a layer provides a pool. */
export const WarmPool = Context.Reference<Pool>("platform/services/WarmPool", {
  defaultValue: () => ({
    places: 0,
    claim: () => Effect.succeed(null),
    wish: () => Effect.succeed(false),
    wishes: Effect.succeed(new Map<string, number>()),
    changed: Effect.never,
  }),
});

/**
 * The sandbox in which a session goes on: a waiting one if there is one. While a stop is under way it is always a new one, because a
 * claimed one would wait for the end of the stop, for no other session, and meanwhile become outdated.
 * @returns the sandbox's id
 */
export const sandboxToGoOn = Effect.fnUntraced(function* (
  session: Pick<Session, "id" | "projectId" | "origin" | "agentName" | "status">,
) {
  const waiting = isLive(session.status) ? null : yield* (yield* WarmPool).claim(session);
  return waiting ?? (yield* newUuid);
});

export interface WarmPoolOptions {
  readonly nodeId: string;
  /** PLATFORM_WARM_MEMORY_MB. */
  readonly warmMemoryMb: number;
}

const make = Effect.fnUntraced(function* (nodeId: string, places: number) {
  const warm = yield* WarmSandboxes;
  const projects = yield* Projects;
  const runtimes = yield* Runtimes;
  /** Sandboxes wait with the runtime of the default agent. */
  const fits = Effect.fnUntraced(function* (projectId: string, agentName: string) {
    if (agentName === DEFAULT_AGENT) return true;
    const [state = null] = yield* projects.states([projectId]);
    return waitsAs(agentsIn(state?.manifest ?? null, runtimes), agentName, runtimes);
  });
  const change = Latch.makeUnsafe(false);
  let wishes = new Map<string, number>();
  return {
    places,
    claim: Effect.fnUntraced(function* ({ id: sessionId, projectId, origin, agentName }) {
      if (!(yield* fits(projectId, agentName))) return null;
      const isPersons = origin !== "trigger";
      const now = yield* Clock.currentTimeMillis;
      return yield* warm.claim({ projectId, sessionId, nodeId, isPersons, now });
    }),
    wish: (projectId) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (wishes.size < WISHES_MAX) wishes.set(projectId, now + WISH_MS);
        change.openUnsafe();
        return true;
      }),
    wishes: Effect.sync(() => {
      const current = wishes;
      wishes = new Map();
      change.closeUnsafe();
      return current;
    }),
    changed: change.await,
  } satisfies Pool;
});

export const warmPoolLayer = ({
  nodeId,
  warmMemoryMb,
}: WarmPoolOptions): Layer.Layer<never, never, WarmSandboxes | Projects> => {
  const places = Math.floor(warmMemoryMb / WARM_MB);
  return places === 0 ? Layer.empty : Layer.effect(WarmPool, make(nodeId, places));
};
