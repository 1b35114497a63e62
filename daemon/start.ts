/** Runs the daemon as this process: from its environment to its exit code. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import metadata from "../package.json" with { type: "json" };
import { runDaemon } from "./daemon.ts";
import { readSettings, type Layout, type Settings } from "./settings.ts";

const write = (line: string): void => {
  process.stdout.write(line);
};

/** Returns at once; the process ends with the daemon: code 0 on SIGTERM or SIGINT, 1 on anything else. */
export const start = (layout: Layout): void => {
  const settings = settingsOrExit(layout);
  // A log that nobody reads any more must not end the sandbox.
  process.stdout.on("error", () => undefined);
  // Whatever this process starts is given its environment explicitly; this is for what might forget to.
  delete process.env["PLATFORM_TOKEN"];
  const fiber = Effect.runFork(runDaemon({ settings, version: metadata.version, write }));
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => fiber.interruptUnsafe());
  fiber.addObserver((exit) => {
    const asked = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause);
    if (!asked && Exit.isFailure(exit)) fatal(Cause.pretty(exit.cause));
    process.exit(asked ? 0 : 1);
  });
};

const settingsOrExit = (layout: Layout): Settings => {
  try {
    return readSettings(process.env, layout);
  } catch (error) {
    // A decoder's message quotes what it was given, which may be a secret: only its kind is told.
    const kind = error instanceof Error && "code" in error ? String(error.code) : "malformed";
    fatal(`the environment or ${layout.launchFile} cannot be read: ${kind}`);
    process.exit(1);
  }
};

const fatal = (message: string): void =>
  write(`${JSON.stringify({ at: new Date().toISOString(), event: "daemon failed", message })}\n`);
