/** A session of a real service with a running sandbox, as a program with a token reaches it. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, vi } from "vitest";
import { Installation, type Json, type Life, TOKEN } from "../process-service.ts";
import { useRunDatabase } from "../run-database.ts";
import { TEST_MS, WAIT_MS } from "../../patience.ts";

/** A limit that ends a hung test, not a claim about speed. */
export const POLL = { timeout: WAIT_MS, interval: 50 };

/** Commits files to the installation's sample: each from its source to a path in the repository. */
export const commitToSample = ({ sample }: Installation, files: Readonly<Record<string, string>>): void => {
  for (const [to, from] of Object.entries(files)) {
    cpSync(from, path.join(sample, to), { recursive: true, dereference: true });
  }
  const git = (...args: readonly string[]) => execFileSync("git", ["-C", sample, ...args]);
  git("add", "--force", "--all");
  // Fast compression, because some programs have megabytes and the packing is not under test.
  git("config", "core.compression", "1");
  git(
    "-c",
    "user.name=Test",
    "-c",
    "user.email=test@localhost",
    "commit",
    "-q",
    "-m",
    "Add what a test needs",
  );
};

/**
 * Run directories that contain the sandbox. It is torn down after the stop is answered, and its directory is removed
 * last.
 */
const directoriesOf = (sandboxId: string): string[] =>
  readdirSync(tmpdir()).filter((name) => existsSync(path.join(tmpdir(), name, "s", sandboxId)));

export class LiveSession {
  readonly life: Life;
  /** Its path in the API. */
  readonly path: string;

  private constructor(life: Life, target: string) {
    this.life = life;
    this.path = target;
  }

  /** Creates a project from the installation's sample and a session in it, and waits until the session runs. */
  static async start(life: Life, { sample }: Installation, body: Json = {}): Promise<LiveSession> {
    return LiveSession.startIn(life, await life.project(sample), body);
  }

  /** Creates a session in a project, and waits until it runs. */
  static async startIn(life: Life, projectId: string, body: Json = {}): Promise<LiveSession> {
    const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, body);
    return LiveSession.running(life, projectId, String(id));
  }

  /** Waits until a session runs. */
  static async running(life: Life, projectId: string, id: string): Promise<LiveSession> {
    const session = await life.session(projectId, id, ["running", "failed"]);
    expect(session["status"], JSON.stringify(session["failure"])).toBe("running");
    return new LiveSession(life, `/v1/projects/${projectId}/sessions/${id}`);
  }

  /** The same session, as a later life of its service has it. */
  at(life: Life): LiveSession {
    return new LiveSession(life, this.path);
  }

  /** An address below the session's, for other clients. `headers` carry the token. */
  address(below: string) {
    const url = new URL(`${this.life.url}${this.path}/${below}`);
    return { url, headers: { authorization: `Bearer ${TOKEN}` } };
  }

  call(method: string, below: string, body?: Json): Promise<Json> {
    return this.life.call(method, `${this.path}/${below}`, body);
  }

  /** The names of the files that the branch changes, in order. */
  async filesChanged(): Promise<readonly unknown[]> {
    const { files_changed: files } = await this.call("GET", "changes");
    return (files as readonly Json[]).map((file) => file["path"]).toSorted();
  }

  /** Makes the scripted model run a command in the agent's shell. Resolves when its turn is over. */
  async run(command: string): Promise<void> {
    const { id } = await this.call("POST", "runtime/session", { title: "asked for by a test" });
    const parts = [{ type: "text", text: `run: ${command}` }];
    const answer = await this.call("POST", `runtime/session/${String(id)}/message`, { parts });
    expect(JSON.stringify(answer["parts"])).toContain("Done.");
  }

  /** Waits until a server listens on the port. */
  async listening(port: number): Promise<void> {
    const { url, headers } = this.address(`ports/${port}/`);
    await vi.waitFor(async () => expect((await fetch(url, { headers })).status).toBe(200), POLL);
  }

  /** Stops it and waits until its sandbox is gone, because sandboxes outlive the service. */
  async stop(): Promise<void> {
    const { id } = await this.call("GET", "sandbox");
    await this.call("POST", "stop");
    await vi.waitFor(() => expect(directoriesOf(String(id))).toEqual([]), POLL);
  }
}

/** A service with one session, for all tests of a suite. @returns it, once the tests run */
export const useLiveSession = (body: Json): (() => LiveSession) => {
  const database = useRunDatabase();
  let installation: Installation;
  let life: Life;
  let session: LiveSession;
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start(database());
    session = await LiveSession.start(life, installation, body);
  }, TEST_MS);
  afterAll(async () => {
    try {
      await session?.stop();
    } finally {
      await life?.end("SIGTERM");
      await installation?.close();
    }
  }, TEST_MS);
  return () => session;
};
