/** Memory for machines whose state can be rebuilt by looking at the world. It lives only as long as the actor. */
import * as Effect from "effect/Effect";
import type { Step } from "../machines/step.ts";
import type { Change, Memory } from "../store/ports/journal.ts";

/**
 * A fresh memory that begins with a machine's `start`. One actor owns it: do not share it.
 *
 * @param saved hears of each step after it was saved.
 */
export function volatileMemory<S, Event, Command>(
  first: Step<S, Command>,
  saved: (change: Change<S, Event, Command>) => void = () => undefined,
): Memory<S, Event, Command> {
  let version = 0;
  let count = 0;
  let snapshot = first.snapshot;
  const pending = new Map<string, Command>();
  const enlist = (commands: readonly Command[]) =>
    commands.map((command) => {
      count += 1;
      pending.set(String(count), command);
      return { id: String(count), command };
    });
  enlist(first.commands);
  return {
    load: () =>
      Effect.sync(() => ({
        snapshot,
        version,
        pending: [...pending].map(([id, command]) => ({ id, command })),
      })),
    save: (change) =>
      Effect.sync(() => {
        const { after, commands, completes } = change;
        version += 1;
        snapshot = after;
        if (completes !== null) pending.delete(completes);
        saved(change);
        return { version, pending: enlist(commands) };
      }),
    complete: (_, ids) => Effect.sync(() => ids.forEach((id) => pending.delete(id))),
  };
}
