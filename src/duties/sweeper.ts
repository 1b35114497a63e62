/**
 * Hibernates sessions that are idle (spec.md 3.1 "Idle sweep", api.md 3 "Idle"). It runs on a timer, with no input:
 * each round checks the sandboxes of this node.
 *
 *  Z1 Idleness never stops an agent at work, up to the ceiling of one turn (PLATFORM_MAX_TURN_MS).
 *  Z2 A session is judged only by known facts: if its daemon does not answer, it is left alone. The actor that watches
 *     the sandbox decides whether it lives.
 *  Z3 Activity that happens while the daemon is asked counts.
 *  Z4 An agent that waits for a person does not work, from its question on. It works again from the answer on, also before
 *     its daemon has reported that.
 *  Z5 Keys in a terminal are use, from the last one on. Its output and its connection are not.
 *  Z6 A sandbox that stayed because its work cannot be saved is tried again after a pause that grows. After a day, and if it
 *     holds a slot beyond half of its account's, it goes with what is saved.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { DaemonClient, type DaemonHealth } from "../sandbox/daemon.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { Conversations } from "../store/ports/conversations.ts";
import { UNSAVED_MAX_MS } from "../domain/save/order.ts";
import { Sessions, type RunningSession } from "../store/ports/sessions.ts";
import { Activity } from "../services/activity.ts";
import { Actors } from "../services/actors.ts";
import { linked } from "../services/answered.ts";
import { told } from "../actors/delivery.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";

export interface SweeperOptions {
  /** The sweeper handles the sessions whose sandboxes are on this node. */
  readonly nodeId: string;
  /** PLATFORM_IDLE_TIMEOUT_MS. */
  readonly idleTimeoutMs: number;
  /** PLATFORM_MAX_TURN_MS. */
  readonly maxTurnMs: number;
}

/** How many daemons are asked at a time. */
const CONCURRENCY = 16;

type Turn = DaemonHealth["turn"];

/** An instant that a sandbox reports, ms. A future instant counts as now, and an invalid one as null. */
const past = (text: string | null, now: number): number | null => {
  const instant = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(instant) ? null : Math.min(now, instant);
};

/** When the agent last worked, ms since the epoch. While a turn is in progress that is now, up to the ceiling (Z1). */
const agentActiveAt = (turn: Turn, now: number, maxTurnMs: number): number => {
  if (turn.active !== true) return past(turn.last_activity_at, now) ?? 0;
  const since = past(turn.active_since, now);
  return since === null ? now : Math.min(now, since + maxTurnMs);
};

/** Z6: whether this try to save a session is the last one. Null: it is not due yet. */
const isLastTry = ({ unsaved, isSurplus }: Pick<RunningSession, "unsaved" | "isSurplus">) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (unsaved === null) return false;
    if (isSurplus || now >= unsaved.since + UNSAVED_MAX_MS) return true;
    return now < unsaved.nextAt ? null : false;
  });

/** One round. */
export const sweep = Effect.fnUntraced(function* ({ nodeId, idleTimeoutMs, maxTurnMs }: SweeperOptions) {
  const [sessions, activity, actors] = [yield* Sessions, yield* Activity, yield* Actors];
  const [provider, daemon] = [yield* SandboxProvider, yield* DaemonClient];
  const conversations = yield* Conversations;
  const running = yield* sessions.runningOn(nodeId);
  activity.keep(new Set(running.map(({ id }) => id)));

  const isIdle = Effect.fnUntraced(function* (id: string, since: number) {
    const now = yield* Clock.currentTimeMillis;
    return now - Math.max(since, activity.last(id)) >= idleTimeoutMs;
  });
  /** Z4: since when the agent waits for a person, ms since the epoch. Null: it does not. */
  const waitingSince = Effect.fnUntraced(function* (id: string) {
    // Few agents wait, so this comes before the larger read.
    if ((yield* conversations.states([id])).get(id)?.turn.state !== "requires_action") return null;
    const known = yield* conversations.page(id, { before: null, limit: 1 });
    if (known?.conversation.turn.state !== "requires_action") return null;
    const isAnswered = known.requests.length > 0 && known.requests.every(({ answer }) => answer !== null);
    return isAnswered ? null : known.conversation.turn.since;
  });
  const judge = Effect.fnUntraced(function* ({ id, sandboxId, runningAt, ...row }: RunningSession) {
    // Most sessions are in use, so only those that may be idle are asked.
    if (!(yield* isIdle(id, runningAt))) return;
    const isLast = yield* isLastTry(row);
    if (isLast === null) return;
    const { turn, typed_at: typed = null } = yield* Effect.flatMap(
      linked(provider, sandboxId),
      daemon.health,
    ).pipe(
      Effect.tapErrorTag("DaemonOutdated", () =>
        row.unsaved === null
          ? Effect.void
          : told(actors.session(id, { type: "daemon.outdated", sandboxId, isLast })),
      ),
    );
    const now = yield* Clock.currentTimeMillis;
    const waiting = turn.active === true ? yield* waitingSince(id) : null;
    const workedAt = waiting ?? agentActiveAt(turn, now, maxTurnMs);
    if (!(yield* isIdle(id, Math.max(runningAt, workedAt, past(typed, now) ?? 0)))) return;
    yield* Effect.logInfo("a session is idle", { session: id, turn: turn.active });
    yield* told(actors.session(id, { type: "idle.elapsed", isLast }));
  });
  yield* Effect.forEach(running, (session) => Effect.ignore(judge(session)), {
    concurrency: CONCURRENCY,
    discard: true,
  });
});

export const sweeperLayer = (options: SweeperOptions) =>
  Layer.effectDiscard(
    runDuty("sweeper", {
      round: sweep(options),
      first: "a period",
      periodMs: DUTIES.sweeper.periodMs(options),
    }),
  );
