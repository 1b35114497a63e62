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
 *     Its session keeps what it asked, so that a person who comes later still hears of it.
 *  Z5 Keys in a terminal are use, from the last one on. Its output and its connection are not.
 *  Z6 A sandbox that stayed because its work cannot be saved is tried again after a pause that grows. After a day, and if it
 *     holds a slot beyond half of its account's, it goes with what is saved.
 *  Z7 If requests of an account's people wait for a slot, its sessions on this node stop that have rested longest, as if they were
 *     idle: as many as are wanted, one after the other. Each has rested for PLATFORM_MAKE_ROOM_AFTER_MINUTES, is saved whole, and
 *     has no open request or connection and no question that a person could answer.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import { Pause } from "../ground/pause.ts";
import { DaemonClient, type DaemonHealth } from "../sandbox/daemon.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { Conversations } from "../store/ports/sessions/conversations.ts";
import type { TurnRequest } from "../domain/conversation/row-texts.ts";
import { UNSAVED_MAX_MS } from "../domain/save/order.ts";
import { Sessions, type RunningSession } from "../store/ports/sessions/sessions.ts";
import { Activity } from "../services/sessions/activity.ts";
import { Actors } from "../services/actors.ts";
import { withLink } from "../services/answered.ts";
import { deliver } from "../actors/delivery.ts";
import { DUTIES } from "../services/duties.ts";
import { RoomWishes } from "../services/triggers/room-wishes.ts";
import { runDuty } from "../services/duty.ts";

export interface SweeperOptions {
  /** The sweeper handles the sessions whose sandboxes are on this node. */
  readonly nodeId: string;
  /** PLATFORM_IDLE_TIMEOUT_MS. */
  readonly idleTimeoutMs: number;
  /** PLATFORM_MAX_TURN_MS. */
  readonly maxTurnMs: number;
  /** PLATFORM_MAKE_ROOM_AFTER_MINUTES, in ms. Null if no session makes room. */
  readonly makeRoomAfterMs: number | null;
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

/** Z6: whether this try to save a session is the last one. Null if it is not due yet. */
const isLastTry = ({ unsaved, isSurplus }: Pick<RunningSession, "unsaved" | "isSurplus">) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (unsaved === null) return false;
    if (isSurplus || now >= unsaved.since + UNSAVED_MAX_MS) return true;
    return now < unsaved.nextAt ? null : false;
  });

/** What a daemon says, as the instant of the last work and keys, ms since the epoch. */
interface Rest {
  readonly since: number;
  /** The agent is in a turn. It may wait for a person. */
  readonly isInTurn: boolean;
  /** What the agent asks a person. Null if it waits for none. */
  readonly asks: TurnRequest | null;
}

/** Reads since when sessions rest, apart from what `Activity` knows. */
const makeRests = Effect.fnUntraced(function* ({ maxTurnMs }: Pick<SweeperOptions, "maxTurnMs">) {
  const actors = yield* Actors;
  const [provider, daemon] = [yield* SandboxProvider, yield* DaemonClient];
  const conversations = yield* Conversations;
  /** Z4: since when the agent waits for a person, ms since the epoch. Null if it does not. */
  const waitingSince = Effect.fnUntraced(function* (id: string) {
    // Few agents wait, so this comes before the larger read.
    if ((yield* conversations.states([id])).get(id)?.turn.state !== "requires_action") return null;
    const page = yield* conversations.page(id, { before: null, limit: 1 });
    if (page?.conversation.turn.state !== "requires_action") return null;
    const isAnswered = page.requests.length > 0 && page.requests.every(({ answer }) => answer !== null);
    return isAnswered ? null : page.conversation.turn.since;
  });
  return Effect.fnUntraced(function* ({ id, sandboxId, runningAt, ...row }: RunningSession, isLast: boolean) {
    const { turn, typed_at: typed = null } = yield* Effect.flatMap(
      withLink(provider, sandboxId),
      daemon.health,
    ).pipe(
      Effect.tapErrorTag("DaemonOutdated", () =>
        row.unsaved === null
          ? Effect.void
          : deliver(actors.session(id, { type: "daemon.outdated", sandboxId, isLast })),
      ),
    );
    const now = yield* Clock.currentTimeMillis;
    const waiting = turn.active === true ? yield* waitingSince(id) : null;
    const workedAt = waiting ?? agentActiveAt(turn, now, maxTurnMs);
    const rest: Rest = {
      since: Math.max(runningAt, workedAt, past(typed, now) ?? 0),
      isInTurn: turn.active === true,
      asks: turn.active === true && waiting === null ? null : row.asks,
    };
    return rest;
  });
});

/** One round. */
export const sweep = Effect.fnUntraced(function* (options: SweeperOptions) {
  const { nodeId, idleTimeoutMs, makeRoomAfterMs } = options;
  const [sessions, activity, actors] = [yield* Sessions, yield* Activity, yield* Actors];
  const restFor = yield* makeRests(options);
  const running = yield* sessions.runningOn(nodeId);
  activity.keep(new Set(running.map(({ id }) => id)));

  const restsFor = (id: string, since: number, ms: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => now - Math.max(since, activity.last(id)) >= ms);
  const judge = Effect.fnUntraced(function* (session: RunningSession) {
    const { id, runningAt } = session;
    // Most sessions are in use, so only those that may be idle are asked.
    if (!(yield* restsFor(id, runningAt, idleTimeoutMs))) return;
    const isLast = yield* isLastTry(session);
    if (isLast === null) return;
    const { since, isInTurn, asks } = yield* restFor(session, isLast);
    if (!(yield* restsFor(id, since, idleTimeoutMs))) return;
    yield* Effect.logInfo("a session is idle", { session: id, turn: isInTurn });
    yield* deliver(
      actors.session(id, { type: "idle.elapsed", isLast, ...(asks !== null && { asked: asks }) }),
    );
  });

  /** Those of an account that can make room, the longest at rest first (Z7). */
  const resting = Effect.fnUntraced(function* (accountId: string, ms: number) {
    const may = ({ unsaved, isSaved, ...row }: RunningSession) =>
      row.accountId === accountId && unsaved === null && isSaved;
    const rests = yield* Effect.forEach(
      running.filter(may),
      Effect.fnUntraced(function* (session) {
        const { id, runningAt } = session;
        if (!(yield* restsFor(id, runningAt, ms))) return [];
        const rest = yield* Effect.option(restFor(session, false));
        if (rest._tag === "None" || rest.value.isInTurn) return [];
        return [{ id, since: Math.max(rest.value.since, activity.last(id)) }];
      }),
      { concurrency: CONCURRENCY },
    );
    return rests.flat().toSorted((one, other) => one.since - other.since);
  });
  const makeRoom = Effect.fnUntraced(function* (accountId: string, ms: number) {
    for (const { id, since } of yield* resting(accountId, ms)) {
      // Each one that stops counts, also one of another node (ports/sessions/sessions.ts, `roomWanted`).
      if (!(yield* sessions.roomWanted).has(accountId)) return;
      if (activity.isOpen(id) || !(yield* restsFor(id, since, ms))) continue;
      yield* Effect.logInfo("a resting session makes room", { session: id });
      yield* deliver(actors.session(id, { type: "idle.elapsed", makesRoom: true }));
    }
  });

  yield* Effect.forEach(running, (session) => Effect.ignore(judge(session)), {
    concurrency: CONCURRENCY,
    discard: true,
  });
  // During the pause of a restored copy the queue does not move.
  if (makeRoomAfterMs === null || (yield* Pause).isOn) return;
  for (const accountId of (yield* sessions.roomWanted).keys()) yield* makeRoom(accountId, makeRoomAfterMs);
});

export const sweeperLayer = (options: SweeperOptions) =>
  Layer.effectDiscard(
    Effect.flatMap(RoomWishes, (wishes) =>
      runDuty("sweeper", {
        round: sweep(options),
        first: "a period",
        periodMs: DUTIES.sweeper.periodMs(options),
        signal: Queue.take(wishes),
      }),
    ),
  );
