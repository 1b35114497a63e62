/**
 * The real service in a process of its own with embedded defaults, for tests that kill it and observe it from outside.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface, type Interface } from "node:readline";
import { makeRepository } from "../../../demo/sample.ts";
import { startScriptedModel, type ScriptedModel } from "../../../demo/scripted-model.ts";
import { gitOk } from "../../git/git-client.ts";
import type { Arming } from "../programs/armed-main.ts";
import { guardedDirectory } from "../machine/guard.ts";
import { processesIn } from "../machine/processes-in.ts";
import { WAIT_MS } from "../patience.ts";
import { countStart } from "../vitest/starts.ts";

export const TOKEN = `platform_pat_${"A".repeat(43)}`;
const MAIN = path.join(import.meta.dirname, "../../../src/main.ts");
/** Variants of the program that accept messages. */
const TOLD_MAINS = {
  armed: path.join(import.meta.dirname, "../programs/armed-main.ts"),
  measured: path.join(import.meta.dirname, "../programs/measured-main.ts"),
  shut: path.join(import.meta.dirname, "../programs/shut-main.ts"),
} as const;
/** With `main`, that of another copy of the clone. */
export type Program = "plain" | keyof typeof TOLD_MAINS | { readonly main: string };

const isTold = (program: Program): program is keyof typeof TOLD_MAINS =>
  typeof program === "string" && program !== "plain";

const mainFile = (program: Program): string => {
  if (typeof program === "object") return program.main;
  return program === "plain" ? MAIN : TOLD_MAINS[program];
};

export type Json = Record<string, unknown>;

/**
 * One installation: a data directory, a sample repository to import, the scripted model. Lives of the service come and
 * go.
 */
/** Settings for sandboxes with the light agent runtime (test/support/programs/sandboxes/light-agent) in place of opencode. */
export const LIGHT_AGENT = {
  PLATFORM_AGENT_COMMAND: "light-agent",
  PLATFORM_AGENT_ADAPTER: "plain",
  PATH: `${path.join(import.meta.dirname, "../programs/sandboxes")}${path.delimiter}${process.env["PATH"] ?? ""}`,
} as const;

export class Installation {
  readonly #guarded = guardedDirectory("platform-e2e-");
  readonly directory = this.#guarded.directory;
  readonly dataDir = path.join(this.directory, "data");
  readonly sample = path.join(this.directory, "import", "sample");
  #model: ScriptedModel | null = null;

  static async open(): Promise<Installation> {
    const installation = new Installation();
    mkdirSync(installation.sample, { recursive: true });
    makeRepository(installation.sample);
    installation.#model = await startScriptedModel();
    return installation;
  }

  /**
   * Starts a life of the service and waits for its `ready` line.
   *
   * @param program `armed` has fault points that can be armed (armed-main.ts), `measured` reports its memory
   * (measured-main.ts), `shut` has no gateway to tools until it is opened (shut-main.ts).
   * @param spawned gets the process before it is ready.
   */
  async start(
    settings: Readonly<Record<string, string>> = {},
    program: Program = "plain",
    spawned: (child: ChildProcess) => void = () => undefined,
  ): Promise<Life> {
    countStart("services");
    const { DATABASE_URL: _ours, ...environment } = process.env;
    const child = spawn(process.execPath, [mainFile(program)], {
      cwd: this.directory,
      env: {
        ...environment,
        PLATFORM_PORT: "0",
        PLATFORM_DATA_DIR: this.dataDir,
        PLATFORM_BOOTSTRAP_TOKEN: TOKEN,
        PLATFORM_IMPORT_ROOTS: path.join(this.directory, "import"),
        PLATFORM_LLM_BASE_URL: this.#model?.url ?? "",
        PLATFORM_LLM_API_KEY: "scripted",
        PLATFORM_LLM_TIERS: '["free"]',
        ...settings,
      },
      stdio: ["ignore", "pipe", "pipe", ...(isTold(program) ? (["ipc"] as const) : [])],
    });
    spawned(child);
    const log: string[] = [];
    const [, stdout, stderr] = child.stdio;
    if (stdout === null || stderr === null) throw new Error("the service's output is piped");
    const errors = createInterface({ input: stderr }).on("line", (line) => log.push(line));
    child.once("exit", (code) => {
      // An unexpected end: the failed test's report needs the service's last output.
      if (code !== null && code !== 0)
        process.stderr.write(`a service ended with ${code}:\n${log.slice(-20).join("\n")}\n`);
    });
    // A service that hangs is ended, so that the failed test's report has its last output.
    let isReady = false;
    AbortSignal.timeout(WAIT_MS).addEventListener("abort", () => {
      if (!isReady) child.kill("SIGKILL");
    });
    for await (const line of createInterface({ input: stdout })) {
      const url = /^ready (?<url>http:\S+)$/.exec(line)?.groups?.["url"];
      if (url === undefined) continue;
      isReady = true;
      return new Life({ child, errors, log }, url);
    }
    throw new Error(`the service did not become ready:\n${log.slice(-20).join("\n")}`);
  }

  /** A repository with this manifest, for a project to import. @returns its path. */
  async repository(manifest: string): Promise<string> {
    const directory = path.join(this.directory, "import", randomUUID());
    mkdirSync(directory);
    writeFileSync(path.join(directory, "platform.toml"), manifest);
    await gitOk(directory, "init", "--quiet", "--initial-branch=main");
    await gitOk(directory, "add", ".");
    await gitOk(directory, "commit", "--quiet", "-m", "Begin");
    return directory;
  }

  /** The remaining processes of its lives. */
  processes(): readonly number[] {
    return processesIn(this.directory);
  }

  /** Cleans up everything, including the leftovers of a killed life. */
  async close(): Promise<void> {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended together with the one before it.
      }
    }
    await this.#model?.close();
    this.#guarded.remove();
  }
}

interface Running {
  readonly child: ChildProcess;
  readonly errors: Interface;
  readonly log: readonly string[];
}

/** One life of the service, from start to signal. */
export class Life {
  readonly url: string;
  /** The lines that it has logged so far. */
  readonly log: readonly string[];
  readonly #child: ChildProcess;
  readonly #errors: Interface;

  constructor({ child, errors, log }: Running, url: string) {
    this.log = log;
    this.#child = child;
    this.#errors = errors;
    this.url = url;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /**
   * Makes an armed service send itself the signal at the point's next pass.
   *
   * @returns once it is armed: its output at that point, and its end.
   */
  async arm(arming: Arming): Promise<{ readonly reached: Promise<string>; readonly died: Promise<unknown> }> {
    const exit = once(this.#child, "exit");
    const reached = new Promise<string>((resolve) => {
      this.#errors.on("line", (line) => {
        if (line.startsWith(arming.signal)) resolve(line);
      });
    });
    const armed = once(this.#child, "message");
    this.#child.send(arming);
    await Promise.race([armed, exit]);
    return { reached, died: exit.then(([, signal]) => signal as unknown) };
  }

  /** Asks a measured service for its memory after a collection, in bytes. */
  async memory(): Promise<NodeJS.MemoryUsage> {
    const told = once(this.#child, "message");
    this.#child.send("memory");
    const [memory] = (await told) as [NodeJS.MemoryUsage];
    return memory;
  }

  /** Resolves when a service that is `shut` refuses the next request to its gateway. */
  async refusal(): Promise<void> {
    await once(this.#child, "message");
  }

  /** Opens the gateway of a service that is `shut`. */
  openGateway(): void {
    this.#child.send("open");
  }

  /** Pauses it (SIGSTOP), or continues it (SIGCONT). */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child.kill(signal);
  }

  /** Ends it with a signal. Resolves with its exit code, or null if the signal itself ended it. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const { exitCode, signalCode } = this.#child;
    // A process that has already ended emits no further exit event.
    if (exitCode !== null || signalCode !== null) return exitCode;
    const exit = once(this.#child, "exit");
    this.#child.kill(signal);
    const [code] = (await exit) as [number | null];
    return code;
  }

  /** @param token another person's. Absent: the owner's */
  async call(method: string, target: string, body?: Json, token?: string): Promise<Json> {
    const text = await this.#answer(method, target, { body, token });
    return text === "" ? {} : (JSON.parse(text) as Json);
  }

  text(target: string): Promise<string> {
    return this.#answer("GET", target, {});
  }

  /** A further member of a project. @returns her id and her token */
  async member(pid: string, name: string): Promise<{ readonly id: string; readonly token: string }> {
    const projects = [{ project_id: pid, role: "member" }];
    const { url } = await this.call("POST", "/v1/invitations", { name, role: "member", projects });
    const code = String(url).split("/").at(-1);
    const { user, token } = await this.call("POST", "/dashboard/invitations/accept", { code, name });
    return { id: (user as { readonly id: string }).id, token: String(token) };
  }

  async #answer(
    method: string,
    target: string,
    { body, token = TOKEN }: { readonly body?: Json | undefined; readonly token?: string | undefined },
  ): Promise<string> {
    const answer = await fetch(`${this.url}${target}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${target} answered ${answer.status}: ${text}`);
    return text;
  }

  /** All pages of a list. */
  async everyPage<A>(target: string, name: string): Promise<readonly A[]> {
    const found: A[] = [];
    let cursor: unknown = null;
    do {
      const from = cursor === null ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
      const page = await this.call("GET", `${target}?limit=200${from}`);
      found.push(...(page[name] as A[]));
      cursor = page["next_cursor"];
    } while (cursor !== null);
    return found;
  }

  async project(sample: string): Promise<string> {
    const repository = { kind: "hosted", import_from: sample };
    const { id } = await this.call("POST", "/v1/projects", { name: `sample ${randomUUID()}`, repository });
    return String(id);
  }

  /** Follows the session's events until its status is one of `statuses`, and returns the session. */
  async session(projectId: string, id: string, statuses: readonly string[]): Promise<Json> {
    const target = `/v1/projects/${projectId}/sessions/${id}`;
    const events = await fetch(`${this.url}${target}/events`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const reader = events.body?.getReader();
    if (reader === undefined) throw new Error("the event stream has no body");
    try {
      for (;;) {
        // Read after the stream is open, so that every later change is announced there.
        const session = await this.call("GET", target);
        if (statuses.includes(String(session["status"]))) return session;
        const { done } = await reader.read();
        if (done) throw new Error("the event stream ended");
      }
    } finally {
      await reader.cancel();
    }
  }
}
