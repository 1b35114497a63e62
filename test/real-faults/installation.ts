/**
 * The service under faults: a process of its own with `local` sandboxes in which a light agent runtime runs, on the embedded
 * Postgres or on a given one. Lives come and go on one port; sandboxes go on between them.
 */
import { execFileSync, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Keyring, keyringLayer } from "../../src/services/keyring.ts";
import { parseMasterKey } from "../../src/domain/secret/secret.ts";
import { signal } from "../../src/sandbox/machine/processes.ts";
import { Installation, LIGHT_AGENT, type Life, type Program } from "../support/service/process-service.ts";
import { readMachine, type Machine } from "./machine.ts";
import { readRefs, type Refs } from "./refs.ts";
import { asOneStatement } from "../../src/store/postgres/connection/script.ts";
import { execute, inSnapshot, readTables, type Tables } from "./tables.ts";
import { WITNESS } from "./witness.ts";
import { freePort } from "../support/machine/free-port.ts";

export const CAP = 6;
const EVERY_OTHER_SECOND = "*/2 * * * * *";
export const CRON = EVERY_OTHER_SECOND;
export const HOOK_SECRET = "It's a Secret to Everybody";
/** A value that must not appear anywhere (threats.md I16). */
export const CANARY = "canary-5c0f6e1b7d2a4938";
const MANIFEST = `
[[triggers]]
slug = "hook"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "{{ body.ref }}"

[[triggers]]
slug = "tick"
type = "cron"
cron = "${EVERY_OTHER_SECOND}"
prompt = "{{ cron.fired_at }}"
`;
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "local",
  ...LIGHT_AGENT,
  PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
} as const;

const LOG_KEPT = 4 * 1024 * 1024;

export interface MakeOptions {
  /** The size of a disk of its own for the data directory, as mount(8) takes it: root's to make. */
  readonly disk?: string;
  readonly program?: Program;
}

export class FaultyService {
  readonly installation: Installation;
  readonly port: number;
  projectId = "";
  readonly #settings: Readonly<Record<string, string>>;
  readonly #program: Program;
  #life: Life | null = null;
  #starting: ChildProcess | null = null;
  #log = "";
  readonly #groupPlaces = new Set<string>();

  private constructor(
    installation: Installation,
    port: number,
    { settings, program }: { readonly settings: Readonly<Record<string, string>>; readonly program: Program },
  ) {
    this.installation = installation;
    this.port = port;
    this.#settings = settings;
    this.#program = program;
  }

  /**
   * Makes an installation; nothing is started.
   *
   * @param settings beside those of the harness.
   */
  static async make(
    settings: Readonly<Record<string, string>> = {},
    { disk, program = "plain" }: MakeOptions = {},
  ): Promise<FaultyService> {
    const installation = await Installation.open();
    if (disk !== undefined) {
      mkdirSync(installation.dataDir);
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${disk}`, "tmpfs", installation.dataDir]);
    }
    const all = { ...SETTINGS, ...settings };
    return new FaultyService(installation, await freePort(), { settings: all, program });
  }

  /** Makes the project whose triggers fire, and sets the witness in the database. */
  async furnish(): Promise<void> {
    await execute(this.databaseUrl, asOneStatement(WITNESS));
    this.projectId = await this.life.project(await this.installation.repository(MANIFEST));
    const secrets = { HOOK_SECRET, CANARY };
    for (const [name, value] of Object.entries(secrets))
      await this.life.call("PUT", `/v1/projects/${this.projectId}/secrets/${name}`, { value });
  }

  /** The one that is up, or was last. */
  get life(): Life {
    if (this.#life === null) throw new Error("the service was never started");
    return this.#life;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** @returns how long it took until the service said that it is ready, ms. */
  async start(): Promise<number> {
    const begun = performance.now();
    const settings = { ...this.#settings, PLATFORM_PORT: String(this.port) };
    try {
      this.#life = await this.installation.start(settings, this.#program, (child) => {
        this.#starting = child;
        child.stderr?.on("data", (chunk: Buffer) => {
          this.#log = (this.#log + chunk.toString()).slice(-LOG_KEPT);
        });
      });
    } finally {
      this.#starting = null;
    }
    return performance.now() - begun;
  }

  /** Starts it and kills it with -9 so long after: it may be up by then, or not. */
  async startAndKill(afterMs: number): Promise<void> {
    const started = this.start().then(
      () => true,
      () => false, // It was killed before.
    );
    await Promise.race([delay(afterMs), started]);
    await delay(0);
    if (this.#starting === null) await this.life.end("SIGKILL");
    else this.#starting.kill("SIGKILL");
    if (await started) await this.life.end("SIGKILL");
  }

  /** The end of what its lives have logged. */
  get log(): string {
    return this.#log;
  }

  get dataDir(): string {
    return this.installation.dataDir;
  }

  #file(name: string): string {
    return readFileSync(path.join(this.dataDir, name), "utf8").trim();
  }

  get nodeId(): string {
    return this.#file("node-id");
  }

  get runDir(): string {
    return path.join(tmpdir(), `platform-${this.#file("installation-id").slice(-12)}`);
  }

  get databaseUrl(): string {
    const given = this.#settings["DATABASE_URL"];
    if (given !== undefined) return given;
    const host = encodeURIComponent(path.join(this.dataDir, "postgres"));
    return `postgres://platform:${this.#file("postgres-password")}@localhost/postgres?host=${host}`;
  }

  /** The embedded postmaster's pid. */
  get postmaster(): number {
    return Number(this.#file("postgres/postmaster.pid").split("\n")[0]);
  }

  tables(): Promise<Tables> {
    return inSnapshot(this.databaseUrl, readTables);
  }

  machine(): Machine {
    return readMachine(this.runDir, this.#groupPlaces);
  }

  get repository(): string {
    return path.join(this.dataDir, "repositories", `${this.projectId}.git`);
  }

  refs(): Promise<Refs> {
    return readRefs(this.repository);
  }

  /** Derives the tokens of sandboxes, as the service does. */
  async keyring(): Promise<Keyring["Service"]> {
    const text = this.#settings["PLATFORM_MASTER_KEY"] ?? this.#file("master-key");
    const bytes = parseMasterKey(text) ?? new Uint8Array();
    const layer = keyringLayer({ current: { version: 1, bytes }, former: [] });
    return Context.get(await Effect.runPromise(Effect.scoped(Layer.build(layer))), Keyring);
  }

  get #isMounted(): boolean {
    return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${this.dataDir} `);
  }

  /** Clears everything away: the service, its sandboxes, its files. */
  async close(): Promise<void> {
    this.#starting?.kill("SIGKILL");
    this.#life?.signal("SIGCONT");
    await this.#life?.end("SIGTERM");
    const { runDir } = this;
    // One more look, for what was forked while the first ones were ended.
    for (const _ of [1, 2])
      for (const { pids } of this.machine().sandboxes) for (const pid of pids) signal(pid, "SIGKILL");
    for (const pid of this.installation.processes()) signal(pid, "SIGKILL");
    if (this.#isMounted) execFileSync("umount", ["--lazy", this.dataDir]);
    await this.installation.close();
    rmSync(runDir, { recursive: true, force: true });
  }
}
