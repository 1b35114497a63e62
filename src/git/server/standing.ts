/**
 * Whether a credential is still valid while its request is under way: a push or a fetch may take minutes. A push writes
 * no ref after its credential has ended (threats.md T03), even if all its bytes arrived before.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { GitError } from "../port.ts";
import { refuseHook, type pushJudge } from "./ref-policy.ts";

export interface Standing {
  /** Completes when the credential ends. */
  readonly ended: Deferred.Deferred<void>;
  /** Checks now. False if the check fails. */
  readonly holds: Effect.Effect<boolean>;
}

type Judge = ReturnType<typeof pushJudge>;

const ENDED = refuseHook("The credential of this push has expired. The remaining refs were not written.");

/** Whether the answer to this line allows a write. */
const isDecisive = (line: string): boolean => line === "end" || line.startsWith("update ");

/**
 * The judge, which first checks whether the credential is still valid.
 *
 * @param isForwarded true if the upstream server accepts a push before `end` is answered. After that, git only follows
 * it.
 */
export const standingJudge = (judge: Judge, standing: Standing | undefined, isForwarded: boolean): Judge => {
  if (standing === undefined) return judge;
  return (line) => {
    if (!isDecisive(line) || (isForwarded && line !== "end")) return judge(line);
    return Effect.flatMap(standing.holds, (holds) => {
      // The connection may be closing: an ended credential is not checked again.
      if (!holds || Deferred.isDoneUnsafe(standing.ended)) return Effect.succeed(ENDED);
      const answer = judge(line);
      if (typeof answer === "string") return Effect.succeed(answer);
      return answer ?? Effect.succeed(ENDED);
    });
  };
};

/** Fails when the credential ends. */
export const untilEnded = (standing: Standing | undefined): Effect.Effect<never, GitError> =>
  standing === undefined
    ? Effect.never
    : Effect.andThen(
        Deferred.await(standing.ended),
        Effect.fail(
          new GitError({ code: "refused", message: "The credential of this request has expired." }),
        ),
      );
