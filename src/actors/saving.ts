/**
 * Asks a sandbox's daemon to save unpushed work before the sandbox is torn down (api.md 3 "Saving"). The agent's turn
 * ends first, so the save holds the agent's final state. A save is bounded in time and never fails the teardown: the
 * result names what could not be saved.
 */
import * as Effect from "effect/Effect";
import { notSaved, type Saved } from "../domain/saved.ts";
import { DaemonClient } from "../sandbox/daemon.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { backoff } from "./supervisor.ts";
import { serviceContext } from "../services/service-context.ts";

export interface SavingOptions {
  /** PLATFORM_SAVE_TIMEOUT_MS. */
  readonly saveTimeoutMs: number;
}

/** The share of that time in which the agent's turn must end. */
const ABORT_SHARE = 0.1;

/** @returns a function that saves the work in a session's sandbox. */
export const workSaver = Effect.fnUntraced(function* ({ saveTimeoutMs }: SavingOptions) {
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const sign = yield* serviceContext;
  return (id: string, sessionId: string): Effect.Effect<Saved> =>
    Effect.gen(function* () {
      // A node that restarts is back within that time.
      const link = yield* Effect.retry(provider.link(id), {
        while: ({ node }) => node === "away",
        schedule: backoff("100 millis", "1 second"),
      });
      const context = sign(id, sessionId);
      const aborted = daemon.abort(link, yield* context, saveTimeoutMs * ABORT_SHARE);
      yield* Effect.catch(aborted, (error) =>
        Effect.logWarning("an agent's turn could not be stopped before its work was saved", { error }),
      );
      return yield* daemon.save(link, yield* context, saveTimeoutMs * (1 - ABORT_SHARE));
    }).pipe(
      Effect.timeoutOrElse({
        duration: saveTimeoutMs,
        orElse: () => Effect.succeed(notSaved(`the sandbox did not answer within ${saveTimeoutMs} ms`)),
      }),
      Effect.catch(({ message }) => Effect.succeed(notSaved(`the sandbox could not be reached: ${message}`))),
      Effect.tap((saved) =>
        Effect.logInfo("work saved", { session: sessionId, ...saved, skipped: saved.skipped.length }),
      ),
    );
});
