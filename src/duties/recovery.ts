/**
 * Takes up what a former life of the service left undone, and what no life of it would: looks at what is, at start, on a timer,
 * and when an outcome is in doubt, and takes no input. Each part may be done at any time, by any number of nodes.
 *
 *  L1 Every actor whose outbox is not empty is loaded, and its commands are performed. After a kill -9 a session that was
 *     provisioning reaches running or failed by this alone, and a merge that was under way is finished.
 *  L2 A live session for which nobody has anything left to do is ended, with a reason (threats.md I7).
 *  L3 An account's counters are what they count (I1, I12); what differs is set right under the account's lock, and said.
 *  L4 Whoever waits while a slot is free is started (I13).
 *  L5 It comes after everything else: it begins when the service is ready, and takes up few actors at a time.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Queue from "effect/Queue";
import { failure } from "../domain/failure.ts";
import { ChangeRequests } from "../store/ports/change-requests.ts";
import { Counters } from "../store/ports/counters.ts";
import { Admissions } from "../store/ports/admissions.ts";
import { StoreHealth } from "../store/ports/health.ts";
import { Sandboxes } from "../store/ports/sandboxes.ts";
import { Sessions } from "../store/ports/sessions.ts";
import type { OwnerlessSession } from "../store/ports/records.ts";
import { Actors, type ActorKind } from "../actors/actors.ts";
import { dutyRound } from "../actors/supervisor.ts";

export interface RecoveryOptions {
  /** Between two looks, ms (PLATFORM_RECOVERY_INTERVAL_MS). */
  readonly intervalMs: number;
  /** The service answers; nothing: it does already. */
  readonly ready?: Effect.Effect<void>;
}

/**
 * Raised where it is not known whether something was committed, and so whether somebody must be woken: the next look comes at
 * once. A signal that is lost costs an interval. Where nobody looks it is a call of an empty function.
 */
export const Doubt = Context.Reference<() => void>("platform/actors/Doubt", {
  defaultValue: () => () => undefined,
});

/** Doubts that come together are one; the looks for them are at least so far apart. */
const DOUBT_PAUSE = "250 millis";

/** L3. */
const mendCounters = Effect.gen(function* () {
  const { wrong, mend } = yield* Counters;
  for (const account of yield* wrong) {
    const mended = yield* mend(account);
    if (mended !== null)
      yield* Effect.logWarning("an account's counters were wrong and are corrected", { account, ...mended });
  }
});

const NOBODY = failure("internal_error", "no service runs it any more");

/** L2: by its sandbox where that is still to be torn down. What comes too late changes nothing. */
const endOwnerless = Effect.fnUntraced(function* ({ id, sandboxId, sandbox }: OwnerlessSession) {
  const actors = yield* Actors;
  yield* Effect.logError("a session without a running service is ended", { session: id });
  const ending =
    sandboxId === null
      ? actors.session(id, { type: "branch.failed", failure: NOBODY })
      : sandbox === "provisioning"
        ? actors.sandbox(sandboxId, { type: "boot.failed", failure: NOBODY })
        : sandbox === "active"
          ? actors.sandbox(sandboxId, { type: "sandbox.lost", failure: NOBODY })
          : actors.session(id, { type: "sandbox.lost", sandboxId, failure: NOBODY });
  yield* Effect.ignore(ending);
});

/**
 * Actors that are loaded at the same time. What one of them has to do asks the database some ten times, so that few of them make
 * a line behind which everybody else would wait.
 */
const LOADED_AT_ONCE = 4;
/** How long one of them may hold up the others: its node may be gone. */
const LOADED_WITHIN = "1 second";

/**
 * Loads actors bit by bit (L5). After each that was not in memory the database is asked for nothing: its answer comes when what was
 * asked before has been answered, so that a slow machine takes up its sessions slowly and serves between them.
 */
const load = Effect.fnUntraced(function* (kind: ActorKind, ids: readonly string[]) {
  const actors = yield* Actors;
  const { ping } = yield* StoreHealth;
  yield* Effect.forEach(
    ids,
    (id) =>
      Effect.timeoutOption(actors.load(kind, id), LOADED_WITHIN).pipe(
        Effect.flatMap((isNew) => (Option.getOrElse(isNew, () => true) ? ping : Effect.void)),
      ),
    { concurrency: LOADED_AT_ONCE, discard: true },
  );
});

/** One look. Waking an actor that is at work changes nothing. */
export const recover = Effect.gen(function* () {
  const actors = yield* Actors;
  const { unsettled: sessions, ownerless } = yield* Sessions;
  const { unsettled: sandboxes } = yield* Sandboxes;
  const { unsettled: changeRequests } = yield* ChangeRequests;
  const { waitingAccounts } = yield* Admissions;
  yield* mendCounters;
  for (const id of yield* waitingAccounts) {
    yield* Effect.ignore(actors.account(id, { type: "cap.changed" }));
  }
  for (const session of yield* ownerless) yield* endOwnerless(session);
  yield* load("session", yield* sessions);
  yield* load("sandbox", yield* sandboxes);
  yield* load("changeRequest", yield* changeRequests);
});

/** Makes doubts heard; beneath whoever has them. */
export class Doubts extends Context.Service<Doubts, Queue.Queue<void>>()("platform/actors/Doubts") {
  static readonly layer = Layer.effectContext(
    Effect.map(Queue.sliding<void>(1), (raised) =>
      Context.make(Doubts, raised).pipe(Context.add(Doubt, () => void Queue.offerUnsafe(raised, undefined))),
    ),
  );
}

/** Looks for ever, in the layer's scope: the first time as soon as `ready` ends. */
export const recoveryLayer = ({ intervalMs, ready = Effect.void }: RecoveryOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const look = dutyRound("recovery", recover);
      const doubts = yield* Doubts;
      const doubted = Effect.andThen(Queue.take(doubts), Effect.sleep(DOUBT_PAUSE));
      const next = Effect.raceFirst(Effect.sleep(intervalMs), doubted);
      const first = Effect.andThen(ready, look);
      yield* Effect.forkScoped(Effect.andThen(first, Effect.forever(Effect.andThen(next, look))));
    }),
  );
