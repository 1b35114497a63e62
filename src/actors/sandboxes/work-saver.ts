/**
 * Saves unpushed work before a sandbox ends (saves.md 5).
 *
 *  V1 The agent's turn ends before its work is saved, so that the save holds the agent's final state. A turn that does not end within
 *     its share of the time is saved as it is.
 *  V2 A save is bounded in time and never fails the teardown: the result names what could not be saved.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { LONG_SAVE_MS, type SaveOrder } from "../../domain/save/order.ts";
import { unfinishedSave, type Saved } from "../../domain/save/saved.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { Saves } from "../../saves/port.ts";
import { withLink } from "../../services/answered.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { backoff } from "../../ground/backoff.ts";

export interface SavingOptions {
  /** PLATFORM_SAVE_TIMEOUT_MS. */
  readonly saveTimeoutMs: number;
  /** PLATFORM_SAVE_EVERY_MS. 0: no saves while a session runs. */
  readonly saveEveryMs: number;
}

/** The stop waits for its answer meanwhile. A daemon that is away for longer is found to be lost by its watcher. */
const RELEASE_MS = 10_000;

/** The share of a stop's time in which the agent's turn must end. */
const ABORT_SHARE = 0.1;

/** How long a save may take, ms. */
const saveLimit = (order: SaveOrder, saveTimeoutMs: number): number =>
  order === "try" || order === "require" ? saveTimeoutMs : LONG_SAVE_MS;

/** The share in which its sandbox must be found again. A node that restarts is back within it. */
const LINK_SHARE = 0.5;

/** The end of the time, in which the answer is made: at most so long, ms, and at most this share. */
const WORDS_MS = 10_000;
const WORDS_SHARE = 0.2;

/** The work that is saved, and how. */
interface Ending {
  readonly sandboxId: string;
  readonly sessionId: string;
  readonly order: SaveOrder;
}

/**
 * @returns `save` saves the work in a session's sandbox before it ends. `release` has a sandbox that stays after all take
 * messages again.
 */
export const workSaver = Effect.fnUntraced(function* ({ saveTimeoutMs }: SavingOptions) {
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const saves = yield* Saves;
  const sessions = yield* Sessions;
  const sign = yield* serviceContext;

  /** V1. */
  const endTurn = Effect.fnUntraced(
    function* ({ sandboxId, sessionId, order }: Ending) {
      const link = yield* Effect.timeout(
        Effect.retry(withLink(provider, sandboxId), {
          while: ({ node }) => node === "away",
          schedule: backoff("100 millis", "1 second"),
        }),
        saveTimeoutMs * LINK_SHARE,
      );
      const context = yield* sign(sandboxId, sessionId);
      yield* order === "dismiss"
        ? daemon.saving.retire(link, context)
        : Effect.asVoid(daemon.abort(link, context, saveTimeoutMs * ABORT_SHARE));
    },
    Effect.catch((error) =>
      Effect.logWarning("an agent's turn could not be stopped before its work was saved", { error }),
    ),
  );

  const release = Effect.fnUntraced(
    function* ({ sandboxId, sessionId }: Pick<Ending, "sandboxId" | "sessionId">) {
      const link = yield* withLink(provider, sandboxId);
      yield* daemon.goOn(link, yield* sign(sandboxId, sessionId));
    },
    Effect.retry(backoff("100 millis", "1 second")),
    Effect.timeout(RELEASE_MS),
    Effect.catch((error) =>
      Effect.logWarning("a sandbox that stays does not hear that messages are taken again", { error }),
    ),
  );

  const save = Effect.fnUntraced(function* (ending: Ending): Effect.fn.Return<Saved> {
    const { sandboxId, sessionId, order } = ending;
    const limitMs = saveLimit(order, saveTimeoutMs);
    const since = yield* Clock.currentTimeMillis;
    const session = yield* Effect.orDie(waitOutOutage("session", sessions.get(sessionId)));
    if (session === null) return yield* Effect.die(new Error(`session ${sessionId} has no row`));
    const saving = Effect.gen(function* () {
      yield* endTurn(ending);
      const left = Math.max(since + limitMs - (yield* Clock.currentTimeMillis), 0);
      return yield* saves.save({
        projectId: session.projectId,
        sessionId,
        sandboxId,
        baseCommit: session.baseCommit,
        limitMs: left - Math.min(WORDS_MS, left * WORDS_SHARE),
        isBackground: false,
        turn: null,
      });
    });
    return yield* Effect.timeoutOrElse(saving, {
      duration: limitMs,
      orElse: () =>
        Effect.map(sessions.get(sessionId), (row) =>
          unfinishedSave(row?.saved ?? null, `the work could not be saved within ${limitMs} ms`),
        ).pipe(Effect.orDie),
    });
  });

  return { save, release };
});
