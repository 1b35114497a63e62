/** Logs go to standard error: for a person at a terminal, as JSON lines otherwise (api.md 9). */
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";

export const logLayer = (isTerminal: boolean): Layer.Layer<never> =>
  Logger.layer([isTerminal ? Logger.consolePretty() : Logger.withConsoleError(Logger.formatJson)]).pipe(
    Layer.provideMerge(Layer.succeed(Logger.LogToStderr, true)),
  );
