/** Git as the workspace program runs it: without a shell, on one repository, with its output as bytes. */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

/** Git at work. */
export type GitProcess = ChildProcess;

export const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** Git's own directory for this work tree. It may be elsewhere, and a file then says where. Null if the work tree has no repository. */
export const gitDirectory = (tree: string): string | null => {
  const path = join(tree, ".git");
  try {
    if (statSync(path).isDirectory()) return path;
    const [, elsewhere] = /^gitdir: (.+?)\n*$/.exec(readFileSync(path, "utf8")) ?? [];
    return elsewhere === undefined ? null : resolve(tree, elsewhere);
  } catch {
    return null;
  }
};

export interface Ended {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Git failed. The message is its own. */
export class GitFailure extends Error {
  override readonly name = "GitFailure";
}

/** Variables that override settings, after those that it has already. */
const withSettings = (
  env: NodeJS.ProcessEnv,
  settings: readonly (readonly [key: string, value: string])[],
): NodeJS.ProcessEnv => {
  const first = Number(env["GIT_CONFIG_COUNT"] ?? 0);
  return {
    ...env,
    GIT_CONFIG_COUNT: String(first + settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${first + at}`, key],
        [`GIT_CONFIG_VALUE_${first + at}`, value],
      ]),
    ),
  };
};

/** The longest text of git's errors that is kept. */
const STDERR_BYTES = 64 * 1024;

/** Collects a child's output to its end. @throws GitFailure if it cannot be started */
export const collect = (child: ChildProcess): Promise<Ended> =>
  new Promise((finish, fail) => {
    const chunks: Buffer[] = [];
    let stderr = "";
    child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      if (stderr.length < STDERR_BYTES) stderr += chunk.toString("latin1");
    });
    child.on("error", (error) => fail(new GitFailure(error.message)));
    child.on("close", (code) => finish({ code, stdout: Buffer.concat(chunks), stderr }));
  });

/** One repository, with its work tree. */
export class Repository {
  readonly tree: string;
  readonly directory: string;
  #env: NodeJS.ProcessEnv;
  /** Names of settings of the content filters that it has, e.g. `filter.lfs.clean`. */
  #filters: readonly string[] | null = null;

  constructor(tree: string, directory: string) {
    this.tree = tree;
    this.directory = directory;
    this.#env = { ...process.env, GIT_DIR: directory, GIT_WORK_TREE: tree };
  }

  /** Also reads the objects of another repository. */
  borrow(from: Repository): void {
    this.#env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = join(from.directory, "objects");
  }

  start(args: readonly string[]): ChildProcess {
    const child = spawn("git", args, { cwd: this.tree, env: this.#env, stdio: ["pipe", "pipe", "pipe"] });
    // Where a program ends before it has read its input, its exit code says so.
    child.stdin?.on("error", () => undefined);
    return child;
  }

  run(args: readonly string[], input: string | Buffer = ""): Promise<Ended> {
    const child = this.start(args);
    const end = collect(child);
    child.stdin?.end(typeof input === "string" ? Buffer.from(input, "latin1") : input);
    return end;
  }

  /** @returns the output. @throws GitFailure if git does */
  async read(args: readonly string[], input: string | Buffer = ""): Promise<Buffer> {
    const { code, stdout, stderr } = await this.run(args, input);
    if (code === 0) return stdout;
    throw new GitFailure(stderr.trim() || `git ${args[0]} ended with ${code ?? "a signal"}`);
  }

  /** The output as records that end with NUL. */
  async records(args: readonly string[], input: string | Buffer = ""): Promise<string[]> {
    return (await this.read(args, input)).toString("latin1").split("\0").slice(0, -1);
  }

  /** The output as lines. */
  async lines(args: readonly string[], input: string | Buffer = ""): Promise<string[]> {
    return (await this.read(args, input)).toString("latin1").split("\n").slice(0, -1);
  }

  /** Whether it has any content filter, which then no longer runs: content is compared and stored as it lies on the disk. */
  async stopFilters(): Promise<boolean> {
    if (this.#filters === null) {
      const { stdout } = await this.run(["config", "-z", "--name-only", "--get-regexp", "^filter\\."]);
      this.#filters = [...new Set(stdout.toString("latin1").split("\0").slice(0, -1))];
      const settings = this.#filters.map((name): [string, string] => [
        name,
        name.endsWith(".required") ? "false" : "",
      ]);
      this.#env = withSettings(this.#env, settings);
    }
    return this.#filters.length > 0;
  }
}
