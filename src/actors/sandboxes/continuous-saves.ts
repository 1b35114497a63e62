/**
 * Saves the work of a running session in the background: at the end of each turn, and at intervals while one runs. A save
 * that is put off leaves its parts, and the next one goes on from them.
 *
 *  C1 A turn that begins puts off a save that is under way. The save before the sandbox's end does the same.
 *  C2 A save that crashes waits for the next occasion. One that lacks something, after a turn, is tried again at each interval.
 */
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import { LONG_SAVE_MS } from "../../domain/save/order.ts";
import { isSafe } from "../../domain/save/saved.ts";
import { Saves } from "../../saves/port.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import type { SavingOptions } from "./work-saver.ts";

/** What gives occasion to save one sandbox. */
export class SaveOccasions {
  #isWorking = false;
  #isEnding = false;
  /** The id of a turn that ended, and was not saved since. */
  #ended: { readonly turn: string | null } | null = null;
  /** Opens with each change. */
  readonly news = Latch.makeUnsafe(false);

  /** The agent begins or ends its work. */
  works(isWorking: boolean): void {
    if (isWorking === this.#isWorking) return;
    this.#isWorking = isWorking;
    this.news.openUnsafe();
  }

  /** A turn has ended. Null if no message began it. */
  endTurn(turn: string | null): void {
    this.#ended = { turn };
    this.news.openUnsafe();
  }

  /** Runs the save before the sandbox's end. Meanwhile there are no others. */
  before<A, E, R>(save: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const set = (isEnding: boolean) =>
      Effect.sync(() => {
        this.#isEnding = isEnding;
        this.news.openUnsafe();
      });
    return Effect.acquireUseRelease(
      set(true),
      () => save,
      () => set(false),
    );
  }

  /** The occasion until the next news. The turn that it names counts as saved. */
  take(): { readonly save: "now"; readonly turn: string | null } | { readonly save: "later" | "never" } {
    this.news.closeUnsafe();
    if (this.#isEnding) return { save: "never" };
    if (this.#isWorking) return { save: "later" };
    const endedTurn = this.#ended;
    this.#ended = null;
    return endedTurn === null ? { save: "never" } : { save: "now", ...endedTurn };
  }
}

interface Followed {
  readonly sandboxId: string;
  readonly sessionId: string;
}

/** @returns a function that saves one sandbox at each occasion. It never ends. */
export const continuousSaver = Effect.fnUntraced(function* ({ saveEveryMs }: SavingOptions) {
  const saves = yield* Saves;
  const sessions = yield* Sessions;

  const saving = Effect.fnUntraced(function* ({ sandboxId, sessionId }: Followed, turn: string | null) {
    const session = yield* waitOutOutage("session", sessions.get(sessionId));
    if (session?.sandboxId !== sandboxId) return true;
    const { projectId, baseCommit } = session;
    const request = { projectId, sessionId, sandboxId, baseCommit, limitMs: LONG_SAVE_MS, turn };
    return isSafe(yield* saves.save({ ...request, isBackground: true }));
  });

  return (sandbox: Followed, occasions: SaveOccasions): Effect.Effect<never> => {
    const save = (turn: string | null) =>
      Effect.catchCause(saving(sandbox, turn), (cause) =>
        Effect.as(Effect.logWarning("a session could not be saved; it is tried again later", cause), true),
      );
    const saveTurn = (turn: string | null): Effect.Effect<void> =>
      Effect.flatMap(save(turn), (isDone) =>
        isDone ? Effect.void : Effect.delay(saveTurn(turn), saveEveryMs),
      );
    const next = Effect.suspend(() => {
      const what = occasions.take();
      const news = occasions.news.await;
      if (what.save === "never") return news;
      if (what.save === "now") return Effect.raceFirst(saveTurn(what.turn), news);
      const later = Effect.forever(Effect.delay(save(null), saveEveryMs));
      return Effect.raceFirst(later, news);
    });
    return saveEveryMs === 0 ? Effect.never : Effect.forever(next);
  };
});
