/**
 * What the service says of a push that git has taken: the third hook, `post-receive`, tells over the talk of the other two
 * (hooks.ts) which refs were written, and prints what it is told. Only refs that were written come here; by then they are,
 * and nothing said or not said changes that.
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

/** Hears of written refs; what it answers stands behind `remote:` on the terminal of whoever pushed. */
export type PushHeard = (written: readonly WrittenRef[]) => Effect.Effect<readonly string[]>;

/** A person waits at the terminal, and can do without the words. */
const PATIENCE = "5 seconds";

const line = /^written [0-9a-f]{40} ([0-9a-f]{40}) (.+)$/s;

export const isDeleted = ({ commit }: WrittenRef): boolean => commit === absent;

/** @returns what takes the hook's lines (false for the lines of others), and what answers when all were heard. */
export const pushListener = (heard: PushHeard | undefined) => {
  const written: WrittenRef[] = [];
  const over = Deferred.makeUnsafe<void>();
  return {
    hear: (text: string): boolean => {
      if (text === "over") return Deferred.doneUnsafe(over, Effect.void);
      const [, commit, ref] = line.exec(text) ?? [];
      if (commit === undefined || ref === undefined) return false;
      written.push({ ref, commit });
      return true;
    },
    answer: (channel: Writable): Effect.Effect<void> =>
      // Patience begins with the question: before it the other hooks talk here, for as long as a push takes.
      Effect.suspend(() => heard?.(written) ?? Effect.succeed([])).pipe(
        Effect.timeoutOrElse({ duration: PATIENCE, orElse: () => Effect.succeed([]) }),
        Effect.map((sentences) => void channel.write(sayings(sentences))),
        (answered) => Effect.andThen(Deferred.await(over), answered),
      ),
  };
};
