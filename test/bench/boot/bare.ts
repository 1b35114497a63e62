/** The peers of a session's boot: a plain clone, and a plain start of the agent runtime. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../support/machine/free-port.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const run = promisify(execFile);
const OPENCODE = path.join(
  path.dirname(createRequire(import.meta.url).resolve("opencode-linux-x64/package.json")),
  "bin/opencode",
);

/** As the daemon probes its runtime (daemon/agent/runtime.ts): soon after each output, and otherwise after the longer pause. */
const PROBE_PAUSE_MS = { shortest: 5, longest: 40 };
const PROBE_TIMEOUT_MS = 250;
/** Of the runtime's output, for the error of one that ends. */
const KEPT_LENGTH = 4096;

const inTemporary = async <A>(work: (directory: string) => Promise<A>): Promise<A> => {
  const { directory, remove } = guardedDirectory("platform-bench-");
  try {
    return await work(directory);
  } finally {
    remove();
  }
};

/** A plain clone of the repository from the same disk, in ms. */
export const bareClone = (repository: string): Promise<number> =>
  inTemporary(async (directory) => {
    const into = path.join(directory, "clone");
    const started = performance.now();
    await run("git", ["clone", "--quiet", "--depth", "1", `file://${repository}`, into], { cwd: directory });
    return performance.now() - started;
  });

/** Whether the runtime answers a request that it is healthy. False if the request is aborted. */
const isHealthy = (port: number, signal: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const request = get(
      { host: "127.0.0.1", port, path: "/global/health", agent: false, signal },
      (answer) => {
        answer.on("error", () => resolve(false));
        answer.on("end", () => resolve(answer.statusCode === 200));
        answer.resume();
      },
    );
    request.on("error", () => resolve(false));
  });

/** Completes with the runtime's next output. */
class Output {
  #next = Promise.withResolvers<void>();

  add(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  get next(): Promise<void> {
    return this.#next.promise;
  }
}

/** Probes until the runtime answers. A probe that hangs is aborted by the next output: it was sent too soon. */
const untilHealthy = async (port: number, output: Output, ended: AbortSignal): Promise<void> => {
  for (;;) {
    const printed = output.next;
    const late = new AbortController();
    const signal = AbortSignal.any([ended, late.signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    const healthy = isHealthy(port, signal);
    if (await Promise.race([healthy, printed.then(() => false)])) return;
    late.abort();
    if (await healthy) return;
    if (ended.aborted) return;
    const { shortest, longest } = PROBE_PAUSE_MS;
    await delay(shortest);
    await Promise.race([printed, delay(longest - shortest)]);
  }
};

/**
 * From spawning the bare runtime to its first healthy answer, in ms. When it returns, the runtime is gone.
 *
 * @throws Error with the runtime's output if it ends by itself
 */
export const bareRuntime = (): Promise<number> =>
  inTemporary(async (directory) => {
    const port = await freePort();
    const started = performance.now();
    const child = spawn(OPENCODE, ["serve", "--hostname", "127.0.0.1", "--port", String(port)], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    const output = new Output();
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-KEPT_LENGTH);
        output.add();
      });
    const ended = new AbortController();
    const exit = once(child, "exit").then(
      ([code, signal]) => `ended with ${String(code ?? signal)}`,
      (error: unknown) => `does not start: ${String(error)}`,
    );
    void exit.then(() => ended.abort());
    try {
      const died = exit.then((how) => Promise.reject(new Error(`the bare runtime ${how}:\n${said}`)));
      died.catch(() => undefined);
      await Promise.race([
        untilHealthy(port, output, ended.signal).then(() => exitIf(ended.signal, died)),
        died,
      ]);
      return performance.now() - started;
    } finally {
      child.kill("SIGKILL");
      await exit;
    }
  });

/** A runtime that has ended is not healthy, whatever it answered before. */
const exitIf = async (ended: AbortSignal, died: Promise<never>): Promise<void> => {
  if (ended.aborted) await died;
};
