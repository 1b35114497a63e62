/** Runs the daemon as this process: from its environment to its exit code. */
import { fstatSync, ftruncateSync, writeSync } from "node:fs";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import metadata from "../package.json" with { type: "json" };
import { Allowance } from "./logs/allowance.ts";
import { makeAdapter } from "./adapters/adapters.ts";
import { runDaemon, type DaemonOptions } from "./daemon.ts";
import { writePackageSettings } from "./boot/packages.ts";
import { installWorkspaceProgram } from "./saving/workspace-program.ts";
import { LogRing, RING_BYTES } from "./logs/log-ring.ts";
import { makeLog, type Log } from "./logs/log.ts";
import { Redactor } from "../src/domain/secret/redactor.ts";
import {
  claimedSettings,
  readLaunch,
  settingSecrets,
  decodeSettings,
  standbySettings,
  type Layout,
  type Settings,
} from "./settings.ts";
import { standBy } from "./boot/standby.ts";

const STDOUT = 1;
/** How large an output file may grow. The service trims it much earlier, but the service may be away. */
const OUTPUT_FILE_BYTES = 8 * RING_BYTES;

const write = (line: string): void => {
  process.stdout.write(line);
};

/**
 * The ring in front of the standard output. Both are written synchronously, so that no line is lost when the daemon is
 * killed.
 */
const openLog = (): LogRing => {
  let uncheckedLines = 0;
  const ring = new LogRing((line) => {
    write(line);
    uncheckedLines += line.length;
    if (uncheckedLines < RING_BYTES) return;
    uncheckedLines = 0;
    keepFileBounded(ring);
  });
  return ring;
};

/**
 * Truncates an output file that is too large, and writes the ring's content to it. A pipe has a reader and is left
 * alone.
 */
const keepFileBounded = (ring: LogRing): void => {
  try {
    const output = fstatSync(STDOUT);
    if (!output.isFile() || output.size < OUTPUT_FILE_BYTES) return;
    ftruncateSync(STDOUT, 0);
    writeSync(STDOUT, ring.text);
  } catch {
    // The disk is full, or the output was closed: the daemon continues, as it does when a write fails.
  }
};

/** Returns at once. The process ends with the daemon: code 0 on SIGTERM or SIGINT, otherwise 1. */
export const start = (layout: Layout): void => {
  const { settings, environment } = settingsOrExit({ ...process.env }, layout);
  writePackageSettings(settings);
  installWorkspaceProgram(settings.layout);
  // If the log's reader is gone, the sandbox must not end.
  process.stdout.on("error", () => undefined);
  // Child processes get an explicit environment. This covers any that would not.
  delete process.env["PLATFORM_TOKEN"];
  const ring = openLog();
  const redactor = new Redactor(settingSecrets(settings));
  const allowance = new Allowance();
  const log = makeLog({ redactor, ring, allowance });
  const fail = (message: string): void => log("daemon failed", { message });
  process.on("uncaughtException", (error) => {
    // Node would print the error with all secrets in it, and exit with 1.
    fail(error.stack ?? error.message);
    process.exit(1);
  });
  const { version } = metadata;
  const fiber = Effect.runFork(
    settings.launch.standby !== undefined
      ? runAfterClaim(environment, { settings, version, redactor, ring, log, allowance })
      : runDaemon({ settings, version, redactor, ring }),
  );
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => fiber.interruptUnsafe());
  fiber.addObserver((exit) => {
    const isRequested = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause);
    if (!isRequested && Exit.isFailure(exit)) fail(Cause.pretty(exit.cause));
    process.exit(isRequested ? 0 : 1);
  });
};

/** Waits for a session, and then runs as its daemon. */
const runAfterClaim = (
  environment: NodeJS.ProcessEnv,
  { log, allowance, ring, ...options }: DaemonOptions & { readonly log: Log; readonly allowance: Allowance },
): Effect.Effect<never> =>
  Effect.scoped(
    Effect.gen(function* () {
      const claim = yield* standBy({
        ...options,
        log,
        allowance,
        adapter: makeAdapter(options.settings),
      });
      const settings = claimedSettings(environment, options.settings, claim.claim);
      return yield* runDaemon({ ...options, settings, ring, claimed: claim });
    }),
  );

/** The settings, and the whole environment that they were read from. */
const settingsOrExit = (
  own: NodeJS.ProcessEnv,
  layout: Layout,
): { readonly settings: Settings; readonly environment: NodeJS.ProcessEnv } => {
  try {
    const launch = readLaunch(layout);
    const environment = { ...own, ...launch.environment };
    const read = launch.standby === undefined ? decodeSettings : standbySettings;
    return { settings: read(environment, launch, layout), environment };
  } catch (error) {
    // A decoder's message quotes its input, which may be a secret, so only the error's kind is reported.
    const kind = error instanceof Error && "code" in error ? String(error.code) : "malformed";
    fatal(`the environment or ${layout.launchFile} cannot be read: ${kind}`);
    process.exit(1);
  }
};

const fatal = (message: string): void =>
  write(`${JSON.stringify({ at: new Date().toISOString(), event: "daemon failed", message })}\n`);
