/**
 * The service's messages about an accepted push. The third hook, `post-receive`, reports the written refs over the same
 * channel as the other two (hooks.ts), and prints the answer. The refs are already written, and no message or failure
 * changes that.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Writable } from "node:stream";
import { absent, sayings } from "./ref-policy.ts";

export interface WrittenRef {
  readonly ref: string;
  /** Forty zeros: the ref was deleted. */
  readonly commit: string;
}

/** Receives written refs. Its answer appears after `remote:` on the pusher's terminal. */
export type PushHeard = (refs: readonly WrittenRef[]) => Effect.Effect<readonly string[]>;

/** A person waits at the terminal, and the messages are optional. */
const PATIENCE = "5 seconds";

const line = /^written [0-9a-f]{40} ([0-9a-f]{40}) (.+)$/s;

export const isDeleted = ({ commit }: WrittenRef): boolean => commit === absent;

/**
 * @returns a function that takes the hook's lines (false for other hooks' lines), and one that answers after the last.
 */
export const pushListener = (hear: PushHeard | undefined) => {
  const refs: WrittenRef[] = [];
  const over = Deferred.makeUnsafe<void>();
  return {
    hear: (text: string): boolean => {
      if (text === "over") return Deferred.doneUnsafe(over, Effect.void);
      const [, commit, ref] = line.exec(text) ?? [];
      if (commit === undefined || ref === undefined) return false;
      refs.push({ ref, commit });
      return true;
    },
    answer: (channel: Writable): Effect.Effect<void> =>
      // The time limit starts with the question. Before that, the other hooks use the channel for as long as a push
      // takes.
      Effect.suspend(() => hear?.(refs) ?? Effect.succeed([])).pipe(
        Effect.timeoutOrElse({ duration: PATIENCE, orElse: () => Effect.succeed([]) }),
        Effect.map((sentences) => void channel.write(sayings(sentences))),
        (answer) => Effect.andThen(Deferred.await(over), answer),
      ),
  };
};
