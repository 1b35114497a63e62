/**
 * The agent's git reports a refused credential to the daemon: git calls the credential helper with `erase`, and the
 * helper writes a line into a named pipe. The agent may only write to the pipe, and the content is not read.
 */
import { execFile } from "node:child_process";
import { constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import type * as Scope from "effect/Scope";
import type { Settings } from "../settings.ts";

/** Every user may write, only the daemon may read. */
const PIPE_MODE = "622";

/**
 * Creates the pipe and listens until the scope closes.
 *
 * @returns an effect that completes at the next refusal, or at once if there was one since it last completed.
 */
export const listenForRejections = Effect.fnUntraced(function* ({
  layout,
  launch,
}: Pick<Settings, "layout" | "launch">): Effect.fn.Return<Effect.Effect<void>, never, Scope.Scope> {
  const rejection = Latch.makeUnsafe(false);
  const path = layout.rejectionPipe;
  // The platform's own programs: in an image's root, `mkfifo` could be anything.
  yield* makePipe(path, launch.commonEnv["PATH"] ?? "/usr/bin:/bin");
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      // Opened for writing too, so that the pipe always has a writer and never ends.
      const pipe = new Socket({
        fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK),
        readable: true,
        writable: false,
      });
      pipe.on("data", () => rejection.openUnsafe());
      return pipe;
    }),
    (pipe) => Effect.sync(() => pipe.destroy()),
  );
  return Effect.andThen(rejection.await, rejection.close);
});

const makePipe = (path: string, programs: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    rmSync(path, { force: true });
    execFile("mkfifo", ["-m", PIPE_MODE, path], { env: { PATH: programs } }, (error) =>
      resume(error === null ? Effect.void : Effect.die(error)),
    );
  });
