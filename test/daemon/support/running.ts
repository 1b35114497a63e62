/** A daemon as a plain child process on this machine, with a service, a repository and a layout of its own. */
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AgentAdapter } from "../../../src/domain/runtimes/runtime.ts";
import type { LaunchSettings, Recap } from "../../../src/domain/sandbox/launch.ts";
import { signUserContext } from "../../../src/domain/sandbox/user-context.ts";
import type { HealthReport } from "../../../daemon/report.ts";
import type { Layout } from "../../../daemon/settings.ts";
import { identify } from "../../../src/sandbox/machine/processes.ts";
import { daemonPrograms, type Programs, runDirectory } from "./program.ts";
import { Service } from "./service.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { countStart } from "../../support/vitest/starts.ts";

const run = promisify(execFile);
export const PROJECT_ID = "0192d3a4-0000-7000-8000-000000000001";
export const TOKEN = "platform_sbx_canary-token-of-this-sandbox";

export interface RunOptions {
  /** Files of the repository's first commit. */
  readonly files?: Readonly<Record<string, string>>;
  readonly adapter?: AgentAdapter;
  /** The agent runtime; the test's own small server where it is left out. */
  readonly agentCommand?: readonly string[];
  /** Directory that comes first on the agent's PATH and is not on the daemon's. */
  readonly agentBin?: string;
  /** Runs the test's own small server, in place of this process's Node. */
  readonly agentProgram?: string;
  readonly agentEnv?: Readonly<Record<string, string>>;
  readonly agent?: LaunchSettings["agent"];
  readonly environment?: Readonly<Record<string, string>>;
  readonly bootDeadlineMs?: number;
  readonly models?: LaunchSettings["models"];
  readonly turnLimits?: LaunchSettings["turnLimits"];
  /** It waits for its session under this id. */
  readonly standby?: string;
  /** Work that a former sandbox saved, and whether it is brought back. */
  readonly wip?: string;
  readonly restore?: boolean;
  /** The conversation with former sandboxes. */
  readonly recap?: Recap;
  /** Put before everything that runs as the agent; nothing where it is left out. */
  readonly prefix?: readonly string[];
  /** Where the runtime listens; a free port where it is left out. */
  readonly runtimePort?: number;
  /** The launch file's text in place of the right one. */
  readonly launchFile?: string;
  /** A file that takes the daemon's output; else the test reads it. */
  readonly outputFile?: number;
  /** Something to change before the daemon starts. @param directory has the agent's `home` */
  readonly prepare?: (service: Service, directory: string) => void;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface LogLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** The variables that a session brings. */
export const sessionVariables = (sessionId: string): Record<string, string> => ({
  PLATFORM_SESSION_ID: sessionId,
  PLATFORM_BRANCH_NAME: sessionId,
  PLATFORM_BASE_REF: "main",
  PLATFORM_AGENT_NAME: "default",
});

export class Running {
  readonly directory: string;
  readonly sessionId = randomUUID();
  readonly layout: Layout;
  readonly service: Service;
  readonly runtimePort: number;
  readonly servicePort: number;
  readonly log: LogLine[] = [];
  /** Everything it ever wrote. */
  output = "";
  child: ChildProcess | null = null;
  readonly #waiting: { matches: (line: LogLine) => boolean; found: (line: LogLine) => void }[] = [];

  private constructor(directory: string, ports: readonly [number, number]) {
    this.directory = directory;
    [this.runtimePort, this.servicePort] = ports;
    this.layout = {
      serviceHost: "127.0.0.1",
      launchFile: join(directory, "launch.json"),
      socket: join(directory, "d.sock"),
      workspace: join(directory, "workspace"),
      credentialFile: join(directory, "git-credential"),
      rejectionPipe: join(directory, "git-credential-refused"),
      gitConfigFile: join(directory, "gitconfig"),
      runtimeDefaultsFile: join(directory, "runtime-defaults.json"),
      attachmentsDir: join(directory, "attachments"),
      sessionEnvironment: join(directory, "session-environment"),
      npmConfigFile: join(directory, "npmrc"),
      configDirectory: join(directory, "config"),
      runtimePort: this.runtimePort,
    };
    this.service = new Service({ root: directory, projectId: PROJECT_ID, token: TOKEN });
  }

  static async start(options: RunOptions = {}): Promise<Running> {
    const directory = mkdtempSync(join(tmpdir(), "daemon-"));
    const running = new Running(directory, [options.runtimePort ?? (await freePort()), await freePort()]);
    mkdirSync(running.layout.workspace);
    mkdirSync(join(directory, "home"));
    mkdirSync(join(directory, "tmp"));
    makeRepository(running, options.files ?? { "README.md": "hello\n" });
    await running.service.start();
    options.prepare?.(running.service, directory);
    running.#launch(await daemonPrograms(), options);
    return running;
  }

  /** The user context that every request but health needs. */
  context(
    change: { readonly token?: string; readonly sessionId?: string; readonly nowMs?: number } = {},
  ): string {
    const acting = {
      userId: "user-1",
      sessionId: change.sessionId ?? this.sessionId,
      role: "owner",
      // oxlint-disable-next-line no-restricted-properties -- the daemon under test reads the machine's clock
      nowMs: change.nowMs ?? Date.now(),
    };
    return signUserContext(acting, change.token ?? TOKEN);
  }

  /** One request with a valid context, unless the headers bring their own. */
  ask(
    path: string,
    options: { method?: string; headers?: OutgoingHttpHeaders; body?: string | Uint8Array } = {},
  ): Promise<Answer> {
    const headers = options.headers ?? { "x-platform-user-context": this.context() };
    return new Promise((resolve, reject) => {
      const call = request(
        { socketPath: this.layout.socket, path, method: options.method ?? "GET", headers, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks).toString("utf8"),
            }),
          );
        },
      );
      call.on("error", reject);
      call.end(options.body);
    });
  }

  /** One call of the control surface; text is sent as it is, anything else as JSON. @returns status and answer. */
  async control(
    name: "refresh" | "env" | "withdraw" | "abort",
    body: unknown = {},
  ): Promise<readonly [number, Readonly<Record<string, unknown>>]> {
    const answer = await this.ask(`/platform/${name}`, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return [answer.status, JSON.parse(answer.body) as Readonly<Record<string, unknown>>];
  }

  /** Commits files to the session branch from elsewhere. @returns the commit. */
  pushFromElsewhere(files: Readonly<Record<string, string>>): string {
    const work = join(this.directory, "seed");
    git("-C", work, "pull", "-q", this.bare, this.sessionId);
    commitFiles(work, files, "from elsewhere");
    git("-C", work, "push", "-q", this.bare, `HEAD:refs/heads/${this.sessionId}`);
    return git("-C", work, "rev-parse", "HEAD").trim();
  }

  /** What git says in the remote repository, without the last line's end. */
  remote(...args: readonly string[]): string {
    return git("-C", this.bare, ...args).replace(/\n$/, "");
  }

  get bare(): string {
    return join(this.directory, `${PROJECT_ID}.git`);
  }

  async health(): Promise<HealthReport> {
    const { body } = await this.ask("/platform/health", { headers: {} });
    return JSON.parse(body) as HealthReport;
  }

  /** Waits for a line of the daemon's log, also one already written. */
  logged(event: string, fields: Readonly<Record<string, unknown>> = {}): Promise<LogLine> {
    const matches = (line: LogLine) =>
      line.event === event && Object.entries(fields).every(([name, value]) => line[name] === value);
    const already = this.log.find(matches);
    if (already !== undefined) return Promise.resolve(already);
    return new Promise((found) => this.#waiting.push({ matches, found }));
  }

  /** A new sandbox of the same session: another daemon on an empty workspace. */
  async reboot(options: RunOptions): Promise<void> {
    await this.end();
    rmSync(this.layout.workspace, { recursive: true, force: true });
    mkdirSync(this.layout.workspace);
    this.log.splice(0);
    this.#launch(await daemonPrograms(), options);
    await this.logged("ready");
  }

  /** Ends the daemon and tells its exit code. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const { child } = this;
    if (child === null) return null;
    if (child.exitCode !== null) return child.exitCode;
    const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
    child.kill(signal);
    return await exited;
  }

  async dispose(): Promise<void> {
    await this.end();
    await this.service.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Git in the workspace, as the agent would run it. */
  async git(...args: readonly string[]): Promise<string> {
    const { stdout } = await run("git", ["-C", this.layout.workspace, ...args], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: join(this.directory, "home"),
        GIT_CONFIG_SYSTEM: this.layout.gitConfigFile,
        GIT_TERMINAL_PROMPT: "0",
      },
      encoding: "utf8",
    });
    return stdout;
  }

  #launch(programs: Programs, options: RunOptions): void {
    const { directory, layout, service, sessionId } = this;
    const launch = {
      prefix: options.prefix ?? [],
      agentCommand: options.agentCommand ?? [
        options.agentProgram ?? process.execPath,
        programs.runtime,
        String(this.runtimePort),
      ],
      adapter: options.adapter ?? "plain",
      ...(options.agentBin !== undefined && { agentPath: `${options.agentBin}:${process.env["PATH"]}` }),
      agentEnv: options.agentEnv ?? {},
      commonEnv: {
        PATH: process.env["PATH"] ?? "",
        HOME: join(directory, "home"),
        TMPDIR: join(directory, "tmp"),
        LANG: "C.UTF-8",
        // Else each opencode would install its plugin library from the registry, which takes longer than its own start.
        npm_config_offline: "true",
      },
      bootDeadlineMs: options.bootDeadlineMs ?? 60_000,
      ...(options.standby !== undefined && { standby: options.standby }),
      ...(options.agent !== undefined && { agent: options.agent }),
      ...(options.wip !== undefined && { wip: options.wip }),
      ...(options.restore !== undefined && { restore: options.restore }),
      ...(options.recap !== undefined && { recap: options.recap }),
      ...(options.models !== undefined && { models: options.models }),
      ...(options.turnLimits !== undefined && { turnLimits: options.turnLimits }),
    };
    writeFileSync(layout.launchFile, options.launchFile ?? JSON.stringify(launch), { mode: 0o600 });
    countStart("daemons");
    const child = spawn(process.execPath, [...programs.daemon, JSON.stringify(layout)], {
      env: {
        PLATFORM_TOKEN: TOKEN,
        PLATFORM_PROJECT_ID: PROJECT_ID,
        PLATFORM_DEFAULT_BRANCH: "main",
        ...(options.standby === undefined && sessionVariables(sessionId)),
        PLATFORM_REPO_URL: service.repoUrl,
        PLATFORM_API_URL: `${service.base}/v1`,
        PLATFORM_SERVICE_PORT: String(this.servicePort),
        PLATFORM_PROJECT_AUTO_CLONE: "1",
        PLATFORM_CLI_TOKEN: "platform_pat_canary-of-the-user",
        ...options.environment,
      },
      stdio: ["ignore", options.outputFile ?? "pipe", "inherit"],
    });
    let rest = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      this.output += chunk.toString("utf8");
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(JSON.parse(line) as LogLine);
    });
    this.child = child;
  }

  #take(line: LogLine): void {
    this.log.push(line);
    for (const waiter of this.#waiting.splice(0)) {
      if (waiter.matches(line)) waiter.found(line);
      else this.#waiting.push(waiter);
    }
  }
}

const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=seed", "-c", "user.email=seed@example.com", ...args], {
    stdio: "pipe",
    encoding: "utf8",
  });

const commitFiles = (work: string, files: Readonly<Record<string, string>>, subject: string): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(work, name, ".."), { recursive: true });
    writeFileSync(join(work, name), text);
  }
  git("-C", work, "add", "-A");
  git("-C", work, "commit", "-q", "--allow-empty", "-m", subject);
};

/** Repositories by their files, and where they are. They are copied: git needs a dozen processes for one. */
const originals = new Map<string, string>();

/** A work tree with one commit on `main`, pushed to a bare repository. */
const original = (files: Readonly<Record<string, string>>): string => {
  const directory = mkdtempSync(join(runDirectory(), "seed-"));
  const [bare, work] = [join(directory, "bare"), join(directory, "seed")];
  git("init", "-q", "--bare", "--template=", "-b", "main", bare);
  mkdirSync(join(bare, "hooks"));
  git("init", "-q", "--template=", "-b", "main", work);
  commitFiles(work, files, "first");
  git("-C", work, "push", "-q", bare, "main");
  return directory;
};

/** A bare repository with one commit on `main`, and the session branch cut from it. */
const makeRepository = (running: Running, files: Readonly<Record<string, string>>): void => {
  const key = JSON.stringify(files);
  const from = originals.get(key) ?? original(files);
  originals.set(key, from);
  cpSync(join(from, "bare"), running.bare, { recursive: true });
  cpSync(join(from, "seed"), join(running.directory, "seed"), { recursive: true });
  const heads = join(running.bare, "refs/heads");
  copyFileSync(join(heads, "main"), join(heads, running.sessionId));
};

/** A process that ended but was not reaped by its new parent yet counts as gone. */
export const isThere = (pid: number): boolean => identify(pid) !== null;
