/**
 * The project's setup command in a sandbox that waits for a session, on the commit that was unpacked there
 * (docs/decisions/0073-warm-sandboxes.md).
 *
 *  A1 It counts for a session only if the session is on the same commit and the command succeeded. Otherwise it is ended, and the session
 *     runs its own.
 *  A2 Before that, the workspace is reset, but only if the command had ended when the session came: later, people may have files there.
 *  A3 It has the project's secrets, and neither a session's variables nor a token that opens anything.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import { agentLaunch, type AgentSide } from "../agent/launch.ts";
import { cleanCheckout, type Prepared } from "../git/checkout.ts";
import type { SetupWish } from "./manifest.ts";
import { runCommand, type SetupOutput, type SetupRun } from "./setup.ts";

/** A setup command that began before its session. */
export interface SetupAhead {
  readonly wish: SetupWish;
  /** Its end. */
  readonly run: Effect.Effect<SetupRun>;
  readonly isOver: Effect.Effect<boolean>;
  /** Ends it, and removes what it left in the workspace. */
  readonly undo: Effect.Effect<void>;
}

/** @returns a function that begins the command of an unpacked commit. The command ends with the scope. */
export const setupAhead = (
  side: AgentSide,
  output: SetupOutput,
): Effect.Effect<(prepared: Prepared) => SetupAhead | null, never, Scope.Scope> =>
  Effect.gen(function* () {
    const start = yield* Deferred.make<Prepared & { readonly setup: SetupWish }>();
    const running = yield* Effect.forkScoped(
      Effect.flatMap(Deferred.await(start), ({ setup, configDir }) =>
        runCommand(output, {
          ...setup,
          timeoutMs: side.settings.launch.setupTimeoutMs,
          launch: (command) => agentLaunch(side, configDir.path, command),
        }),
      ),
    );
    const isOver = Effect.sync(() => running.pollUnsafe() !== undefined);
    const undo = Effect.andThen(Fiber.interrupt(running), cleanCheckout(side.settings));
    return (prepared) => {
      const { setup } = prepared;
      if (setup === null) return null;
      Deferred.doneUnsafe(start, Effect.succeed({ ...prepared, setup }));
      return { wish: setup, run: Fiber.join(running), isOver, undo };
    };
  });
