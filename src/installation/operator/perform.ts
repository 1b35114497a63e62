/** Runs an operator's command. Its failure becomes a sentence. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { thrownText } from "../../ground/thrown.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { ConfigError } from "../../settings/config.ts";
import { StoreError } from "../../store/ports/journal.ts";
import { logLayer } from "../../telemetry/log.ts";

const toFailure = (error: unknown): Failure => {
  if (error instanceof Failure) return error;
  if (error instanceof ConfigError)
    return new Failure(EXIT.usage, "bad_settings", {
      message: `Invalid settings: ${error.problems.join("; ")}.`,
    });
  if (error instanceof StoreError)
    return new Failure(EXIT.tryAgain, "database_unavailable", {
      message: `The database cannot be reached: ${thrownText(error.cause)}`,
    });
  const message = thrownText(error);
  return new Failure(EXIT.refused, "failed", { message });
};

/** @throws Failure */
export const perform = async <A, E>(effect: Effect.Effect<A, E>): Promise<A> => {
  const exit = await Effect.runPromiseExit(Effect.provide(effect, logLayer(process.stderr.isTTY)));
  if (Exit.isSuccess(exit)) return exit.value;
  throw toFailure(Cause.squash(exit.cause));
};
