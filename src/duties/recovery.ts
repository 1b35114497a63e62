/**
 * Resumes work that the service's former life left pending, and ends work that no actor would ever finish. It checks
 * the stored state at start, on a timer, and after a doubtful outcome, and takes no input. Each part is
 * idempotent, and any number of nodes may run it.
 *
 *  L1 Every actor whose outbox is not empty is loaded, and its commands are performed. After a kill -9 this alone
 *     brings a session that was provisioning to running or failed, and finishes an interrupted merge. An actor in memory
 *     that does not know its newest command reads its memory again: another node had it for a while.
 *  L2 A live session for which no actor has work left is ended, with a reason (threats.md I7), and leaves no open item in
 *     its conversation. A live sandbox that its session does not hold is stopped, after its work is saved (I9).
 *  L3 An account's counters match the rows that they count (I1, I12). A difference is corrected under the account's
 *     lock and logged.
 *  L4 If a fire waits while a slot is free, it is started (I13).
 *  L5 Recovery comes last: it begins when the service is ready, and loads few actors at a time.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Queue from "effect/Queue";
import { failure } from "../domain/session/failure.ts";
import { Conversations } from "../store/ports/sessions/conversations.ts";
import { EnvironmentBuilds } from "../store/ports/projects/environment-builds.ts";
import { Counters } from "../store/ports/triggers/counters.ts";
import { Admissions } from "../store/ports/triggers/admissions.ts";
import { StoreHealth } from "../store/ports/health.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import type { UnsettledActor } from "../store/ports/journal.ts";
import { Sessions, type OwnerlessSession } from "../store/ports/sessions/sessions.ts";
import { Actors, type ActorKind } from "../services/actors.ts";
import { Doubts } from "../services/doubt.ts";
import { runDuty } from "../services/duty.ts";
import { ProposedWork } from "../services/sessions/proposed-work.ts";

export interface RecoveryOptions {
  /** Pause between two looks, ms (PLATFORM_RECOVERY_INTERVAL_MS). */
  readonly intervalMs: number;
  /** Completes when the service answers. Default: it answers already. */
  readonly ready?: Effect.Effect<void>;
}

/** Doubts that come together lead to one look. Those looks are at least this far apart. */
const DOUBT_PAUSE = "250 millis";

/** L3. */
const mendCounters = Effect.gen(function* () {
  const { wrong, mend } = yield* Counters;
  for (const account of yield* wrong) {
    const repair = yield* mend(account);
    if (repair !== null)
      yield* Effect.logWarning("an account's counters were wrong and are corrected", { account, ...repair });
  }
});

const UNOWNED = failure("internal_error", "no part of the service works on it");

/** The sandbox has ended, but its session was not told. Does what the sandbox's actor does then (actors/sandbox.ts). */
const reportLost = Effect.fnUntraced(function* (sessionId: string, sandboxId: string) {
  const { close } = yield* Conversations;
  const actors = yield* Actors;
  yield* close(sessionId, { sandboxId, as: "lost", now: yield* Clock.currentTimeMillis });
  yield* Effect.ignore(actors.session(sessionId, { type: "sandbox.lost", sandboxId, failure: UNOWNED }));
  yield* Effect.ignore(actors.conversation(sessionId, { type: "runtime.gone", sandboxId }));
});

/** L2: the session ends by its sandbox, if that still has to be torn down. A late event changes nothing. */
const endOwnerless = Effect.fnUntraced(function* ({ id, sandboxId, sandbox, isHeld }: OwnerlessSession) {
  const actors = yield* Actors;
  if (!isHeld && sandboxId !== null) {
    yield* Effect.logError("a sandbox that its session does not hold is ended", {
      session: id,
      sandbox: sandboxId,
    });
    return yield* Effect.ignore(actors.sandbox(sandboxId, { type: "stop.requested" }));
  }
  yield* Effect.logError("a session without a running service is ended", { session: id });
  const ending =
    sandboxId === null
      ? actors.session(id, { type: "branch.failed", failure: UNOWNED })
      : sandbox === "provisioning"
        ? actors.sandbox(sandboxId, { type: "boot.failed", failure: UNOWNED })
        : sandbox === "active"
          ? actors.sandbox(sandboxId, { type: "sandbox.lost", failure: UNOWNED })
          : reportLost(id, sandboxId);
  yield* Effect.ignore(ending);
});

/**
 * How many actors are loaded at the same time. One actor asks the database about ten times for its work, so many at
 * once would make all other requests wait.
 */
const LOADED_AT_ONCE = 4;
/** How long one actor may delay the others: its node may be gone. */
const LOADED_WITHIN = "1 second";

/**
 * Loads actors gradually (L5). After each actor that was not in memory, the database gets an empty query. Its answer
 * comes after the answers to all earlier queries, so a slow machine loads its sessions slowly and serves requests in
 * between.
 */
const load = Effect.fnUntraced(function* (kind: ActorKind, rows: readonly UnsettledActor[]) {
  const actors = yield* Actors;
  const { ping } = yield* StoreHealth;
  yield* Effect.forEach(
    rows,
    (one) =>
      Effect.timeoutOption(actors.load(kind, one), LOADED_WITHIN).pipe(
        Effect.flatMap((isNew) => (Option.getOrElse(isNew, () => true) ? ping : Effect.void)),
      ),
    { concurrency: LOADED_AT_ONCE, discard: true },
  );
});

/** One look. Waking an actor that is already at work changes nothing. */
export const recover = Effect.gen(function* () {
  const actors = yield* Actors;
  const { unsettled: sessions, ownerless } = yield* Sessions;
  const { unsettled: sandboxes } = yield* Sandboxes;
  const { unsettled: changeRequests } = yield* ProposedWork;
  const { unsettled: conversations } = yield* Conversations;
  const { unsettled: builds } = yield* EnvironmentBuilds;
  const { waitingAccounts } = yield* Admissions;
  yield* mendCounters;
  for (const id of yield* waitingAccounts) {
    yield* Effect.ignore(actors.account(id, { type: "cap.changed" }));
  }
  for (const session of yield* ownerless) yield* endOwnerless(session);
  yield* load("session", yield* sessions);
  yield* load("sandbox", yield* sandboxes);
  yield* load("changeRequest", yield* changeRequests);
  yield* load("conversation", yield* conversations);
  yield* load("environmentBuild", yield* builds);
});

/** Looks for ever, in the layer's scope: the first time as soon as `ready` completes. */
export const recoveryLayer = ({ intervalMs, ready = Effect.void }: RecoveryOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const doubts = yield* Doubts;
      const signal = Effect.andThen(Queue.take(doubts), Effect.sleep(DOUBT_PAUSE));
      yield* runDuty("recovery", { round: recover, first: ready, periodMs: intervalMs, signal });
    }),
  );
