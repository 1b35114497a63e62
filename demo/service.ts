/** The service as a child process with embedded defaults, like `npm start`, with the demo's own settings. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import * as readline from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { thrownText } from "../src/ground/thrown.ts";

const MAIN = path.join(import.meta.dirname, "../src/main.ts");
/** api.md 9: it ends within 10 s of SIGTERM, and a little later on a loaded machine. */
const STOP_MS = 20_000;
/** The first start copies the database's programs and creates the database. */
const START_MS = 120_000;
const LAST_WORDS_MS = 500;
/** How much of its log is shown after a failure. */
const LOG_LINES = 30;

export interface Service {
  readonly baseUrl: string;
  /** Rejects if it ends unexpectedly. */
  readonly died: Promise<never>;
  /** Its newest output lines, to explain a failure. */
  readonly log: () => readonly string[];
  /** Ends it. Resolves when its process is gone. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts it and waits for its `ready` line.
 *
 * @param settings environment variables on top of the caller's own
 * @param signal ends the wait
 * @throws if it ends before it is ready, or is not ready in time; the message has its last output
 */
export const startService = async (
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Service> => {
  const child = spawn(process.execPath, [MAIN], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...ownEnvironment(), ...settings },
    // A process group of its own: Ctrl-C in the terminal reaches only the demo, which then shuts down cleanly.
    detached: true,
  });
  const log: string[] = [];
  const remember = (line: string) => {
    log.push(line);
    if (log.length > LOG_LINES) log.shift();
  };
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const died = exited.then(async ([code, killedBy]): Promise<never> => {
    // Its last output is still on its way.
    await Promise.race([once(child, "close"), delay(LAST_WORDS_MS)]);
    throw new Error(`the service ended by itself (${killedBy ?? `exit code ${String(code)}`})`);
  });
  // Its waiting callers get the error. Without one, it is ignored.
  died.catch(() => undefined);
  readline.createInterface({ input: child.stderr }).on("line", remember);
  const stop = () => end(child, exited);
  try {
    const baseUrl = await Promise.race([
      readyLine(child, remember),
      died,
      abortOf(AbortSignal.any([signal, AbortSignal.timeout(START_MS)])),
    ]);
    return { baseUrl, died, log: () => log, stop };
  } catch (cause) {
    await stop();
    throw new Error([thrownText(cause), ...log].join("\n"), { cause });
  }
};

/** The one line `ready {base_url}`. Other output is stored. */
const readyLine = (child: ChildProcess, remember: (line: string) => void): Promise<string> =>
  new Promise((resolve) => {
    if (child.stdout === null) return;
    readline.createInterface({ input: child.stdout }).on("line", (line) => {
      const baseUrl = /^ready (?<url>\S+)$/.exec(line)?.groups?.["url"];
      if (baseUrl === undefined) remember(line);
      else resolve(baseUrl);
    });
  });

const end = async (child: ChildProcess, exited: Promise<unknown>): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const waiting = new AbortController();
  const late = delay(STOP_MS, "late" as const, { signal: waiting.signal }).catch(() => "cancelled" as const);
  if ((await Promise.race([exited, late])) === "late") {
    child.kill("SIGKILL");
    await exited;
  }
  waiting.abort();
};

/** The caller's environment without its database: the demo creates and drops its own. */
const ownEnvironment = (): NodeJS.ProcessEnv => {
  const { DATABASE_URL: _databaseUrl, ...rest } = process.env;
  return rest;
};

/** Rejects with the signal's reason when it aborts. Ignored without a waiting caller. */
export const abortOf = (signal: AbortSignal): Promise<never> => {
  const aborted = new Promise<never>((_, reject) => {
    const refuse = () => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) refuse();
    else signal.addEventListener("abort", refuse, { once: true });
  });
  aborted.catch(() => undefined);
  return aborted;
};
