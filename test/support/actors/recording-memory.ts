/** A memory in front of another one. It records the calls, and lets a test intercept them. */
import * as Effect from "effect/Effect";
import type { Change, Memory } from "../../../src/store/ports/journal.ts";

/** A test's code before or after the operations of the memory behind. It may fail or wait. */
export interface Between<S, Event, Command> {
  readonly load?: (
    load: ReturnType<Memory<S, Event, Command>["load"]>,
  ) => ReturnType<Memory<S, Event, Command>["load"]>;
  readonly save?: (
    save: ReturnType<Memory<S, Event, Command>["save"]>,
    change: Change<S, Event, Command>,
  ) => ReturnType<Memory<S, Event, Command>["save"]>;
  readonly complete?: (
    complete: ReturnType<Memory<S, Event, Command>["complete"]>,
    ids: readonly string[],
  ) => ReturnType<Memory<S, Event, Command>["complete"]>;
}

export interface RecordingMemory<S, Event, Command> {
  readonly memory: Memory<S, Event, Command>;
  /** Changes that were committed, in order. */
  readonly saves: Change<S, Event, Command>[];
  /** Commands that were marked done without an outcome, in order. */
  readonly completed: string[];
}

export const recordingMemory = <S, Event, Command>(
  behind: Memory<S, Event, Command>,
  between: Between<S, Event, Command> = {},
): RecordingMemory<S, Event, Command> => {
  const { load = (run) => run, save = (run) => run, complete = (run) => run } = between;
  const saves: Change<S, Event, Command>[] = [];
  const completed: string[] = [];
  return {
    saves,
    completed,
    memory: {
      load: (id) => load(behind.load(id)),
      save: (change) =>
        save(
          Effect.tap(behind.save(change), () => Effect.sync(() => saves.push(change))),
          change,
        ),
      complete: (id, ids) =>
        complete(
          Effect.tap(behind.complete(id, ids), () => Effect.sync(() => completed.push(...ids))),
          ids,
        ),
    },
  };
};
