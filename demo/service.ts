/** The service as a child process, on embedded defaults: what `npm start` runs, with settings of the demo's own. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import * as readline from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const MAIN = path.join(import.meta.dirname, "../src/main.ts");
/** api.md 9: it ends within 10 s of SIGTERM; a little more on a loaded machine. */
const STOP_MS = 20_000;
/** The first start copies the database's programs and makes the database. */
const START_MS = 120_000;
const LAST_WORDS_MS = 500;
/** Of its log, what is shown when it fails. */
const LOG_LINES = 30;

export interface Service {
  readonly baseUrl: string;
  /** Rejects when it ends before it was asked to. */
  readonly died: Promise<never>;
  /** Its newest lines of output, for whoever has to explain a failure. */
  readonly log: () => readonly string[];
  /** Ends it; resolves when its process is gone. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts it and waits for its `ready` line.
 *
 * @param settings environment variables on top of the caller's own
 * @param signal gives up the waiting
 * @throws when it ends before it is ready, or is not ready in time, with its last output
 */
export const startService = async (
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Service> => {
  const child = spawn(process.execPath, [MAIN], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...ownEnvironment(), ...settings },
    // A group of its own: Ctrl-C in the terminal reaches the demo alone, which then ends things in order.
    detached: true,
  });
  const log: string[] = [];
  const remember = (line: string) => {
    log.push(line);
    if (log.length > LOG_LINES) log.shift();
  };
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const died = exited.then(async ([code, killedBy]): Promise<never> => {
    // Its last words are still on their way.
    await Promise.race([once(child, "close"), delay(LAST_WORDS_MS)]);
    throw new Error(`the service ended by itself (${killedBy ?? `exit code ${String(code)}`})`);
  });
  // Whoever waits for it hears of it; nobody has to.
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
    throw new Error([messageOf(cause), ...log].join("\n"), { cause });
  }
};

/** The one line `ready {base_url}`; what else it prints is remembered. */
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

/** The caller's environment without another database: the demo makes and drops its own. */
const ownEnvironment = (): NodeJS.ProcessEnv => {
  const { DATABASE_URL: _databaseUrl, ...rest } = process.env;
  return rest;
};

/** Rejects when the signal aborts, with its reason; unheard where nobody waits for it. */
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

export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
