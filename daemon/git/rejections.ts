/**
 * How the agent's git tells the daemon that its credential was refused: git bids the credential helper erase it, and
 * the helper writes a line into a named pipe. The agent may only write there, and what it writes is not read.
 */
import { execFile } from "node:child_process";
import { constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import type * as Scope from "effect/Scope";

/** Anyone may write, only the daemon reads. */
const PIPE_MODE = "622";

/**
 * Makes the pipe and listens until the scope closes.
 *
 * @returns completes at the next refusal, or at once when there was one since it last completed.
 */
export const listenForRejections = Effect.fnUntraced(function* (
  path: string,
): Effect.fn.Return<Effect.Effect<void>, never, Scope.Scope> {
  const refused = Latch.makeUnsafe(false);
  yield* makePipe(path);
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      // Open for writing too: there is always a writer, so the pipe never ends.
      const pipe = new Socket({
        fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK),
        readable: true,
        writable: false,
      });
      pipe.on("data", () => refused.openUnsafe());
      return pipe;
    }),
    (pipe) => Effect.sync(() => pipe.destroy()),
  );
  return Effect.andThen(refused.await, refused.close);
});

const makePipe = (path: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    rmSync(path, { force: true });
    execFile("mkfifo", ["-m", PIPE_MODE, path], { env: { PATH: "/usr/bin:/bin" } }, (error) =>
      resume(error === null ? Effect.void : Effect.die(error)),
    );
  });
