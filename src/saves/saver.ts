/**
 * Moves work between a sandbox and its saves, on the node that has the saves. Two saves of a session follow each other. One in
 * the background gives way to one that a stop waits for.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import { notSaved, type Restored, type Saved } from "../domain/save/saved.ts";
import { GitBackend } from "../git/port.ts";
import { serviceContext } from "../services/sessions/service-context.ts";
import { DaemonClient } from "../sandbox/daemon.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { Sessions } from "../store/ports/sessions/sessions.ts";
import { Measures } from "../telemetry/port.ts";
import { copying } from "./copying.ts";
import type { CopyRequest, RestoreRequest, SaveRequest } from "./port.ts";
import { restoration } from "./restoring.ts";
import { Saving, type SaverOptions, type SaverParts } from "./saving.ts";
import { SaveStore } from "./store.ts";

/** The saves of one session that are under way or wait. */
interface Turns {
  readonly lock: Semaphore.Semaphore;
  /** Done when a stop wants the place of a save in the background. */
  wanted: Deferred.Deferred<void>;
  users: number;
}

const GIVEN_WAY = notSaved("Another save, for which a stop waits, took its place.");

/** @returns the operations that move work between a sandbox and its saves, and the one that only names it */
export const makeSaver = Effect.fnUntraced(function* (options: SaverOptions) {
  const parts: SaverParts = {
    options,
    store: yield* SaveStore,
    daemon: yield* DaemonClient,
    provider: yield* SandboxProvider,
    git: yield* GitBackend,
    sessions: yield* Sessions,
    sign: yield* serviceContext,
  };
  const bySession = new Map<string, Turns>();
  const measures = yield* Measures;
  const measure = ({ state, pending }: Saved): void => {
    const codes = state === "failed" ? ["failed"] : pending.map(({ reason }) => reason);
    for (const code of new Set(codes)) measures.count("saves_incomplete_total", { code });
  };

  const enter = ({ sessionId, isBackground }: SaveRequest): Turns => {
    const turns = bySession.get(sessionId) ?? {
      lock: Semaphore.makeUnsafe(1),
      wanted: Deferred.makeUnsafe<void>(),
      users: 0,
    };
    turns.users += 1;
    bySession.set(sessionId, turns);
    if (!isBackground) Deferred.doneUnsafe(turns.wanted, Effect.void);
    return turns;
  };
  const leave = (sessionId: string, turns: Turns): void => {
    turns.users -= 1;
    if (turns.users === 0) bySession.delete(sessionId);
  };

  const save = (request: SaveRequest): Effect.Effect<Saved> =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(request)),
      (turns) =>
        turns.lock.withPermit(
          Effect.suspend(() => {
            const { result } = new Saving(request, parts);
            const saving = Effect.tap(result, (saved) => Effect.sync(() => measure(saved)));
            if (!request.isBackground) return saving;
            turns.wanted = Deferred.makeUnsafe<void>();
            return Effect.raceFirst(saving, Effect.as(Deferred.await(turns.wanted), GIVEN_WAY));
          }),
        ),
      (turns) => Effect.sync(() => leave(request.sessionId, turns)),
    );
  const restore = (request: RestoreRequest): Effect.Effect<Restored> => restoration(request, parts);
  const copy = (request: CopyRequest) => copying(request, parts);
  const unreachedSave = (request: SaveRequest, error: string): Effect.Effect<Saved> =>
    Effect.tap(new Saving(request, parts).unreached(error), (saved) => Effect.sync(() => measure(saved)));
  return { save, restore, copy, unreached: unreachedSave };
});
