/** A workspace with a pushed branch, its saves, and fresh checkouts that get them, for the suite of saving.ts. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { KeptListing, KnownFile, WorkspaceCommand } from "../../../daemon/saving/command.ts";
import { FrameReader, wholeFrame, type FrameEnd } from "../../../src/domain/save/frames.ts";
import type {
  ListedItem,
  ListRequest,
  Listing,
  ReadRequest,
  RestorePlan,
} from "../../../src/domain/save/listing.ts";
import type { Restored } from "../../../src/domain/save/saved.ts";

/** How a suite runs the workspace program. */
export interface SavingSubject {
  /** Runs it once. @param input its whole standard input @returns its output, if it ended well */
  readonly run: (input: Buffer) => Promise<Buffer>;
  /** Makes everything below a directory belong to the agent, or to this user again. Absent: the agent is this user. */
  readonly own?: (directory: string, owner: "agent" | "test") => void;
  /** Where workspaces may be made. */
  readonly root: string;
}

/** The session's branch. */
export const BRANCH = "session";
const PERSON = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"];

export const git = (directory: string, ...args: readonly string[]): string =>
  execFileSync("git", ["-C", directory, "-c", "safe.directory=*", ...PERSON, ...args], {
    encoding: "utf8",
    stdio: "pipe",
    env: { ...process.env, GIT_OPTIONAL_LOCKS: "0" },
  }).trimEnd();

export interface Frame {
  readonly end: FrameEnd;
  readonly bytes: Buffer;
}

export const framesIn = (output: Buffer): readonly Frame[] => {
  const frames: Frame[] = [];
  let chunks: Buffer[] = [];
  for (const part of new FrameReader().push(output)) {
    if (part.type === "chunk") chunks.push(part.bytes);
    else {
      frames.push({ end: part.end, bytes: Buffer.concat(chunks) });
      chunks = [];
    }
  }
  return frames;
};

/** One save: the listing, and the body of a restoration for it. */
export interface SavedWork {
  readonly listing: Listing;
  readonly plan: RestorePlan["saves"][number];
  readonly contents: readonly Frame[];
}

export class TestWorkspace {
  readonly #subject: SavingSubject;
  readonly directory: string;
  /** The checkout. */
  readonly tree: string;
  readonly #bare: string;
  /** The share of a processor that listing and reading may use. */
  share = 1;
  /** The large files that the daemon knows. */
  known: readonly KnownFile[] = [];
  /** The daemon wants contents of files that changed since. */
  contentsSince = 0;
  /** What the last listing gave the daemon to keep. */
  kept: KeptListing = { known: [], contents: [] };

  private constructor(subject: SavingSubject) {
    this.#subject = subject;
    this.directory = mkdtempSync(join(subject.root, "saving-"));
    this.tree = join(this.directory, "workspace");
    this.#bare = join(this.directory, "pushed.git");
  }

  static make(subject: SavingSubject, files: Readonly<Record<string, string>> = {}): TestWorkspace {
    const workspace = new TestWorkspace(subject);
    const { directory, tree } = workspace;
    git(directory, "init", "-q", "--bare", "-b", BRANCH, workspace.#bare);
    git(directory, "init", "-q", "-b", BRANCH, tree);
    git(tree, "remote", "add", "origin", workspace.#bare);
    for (const [path, text] of Object.entries({ "README.md": "hello\n", ...files }))
      workspace.write(path, text);
    workspace.commit("pushed");
    workspace.push();
    return workspace;
  }

  at(path: string): string {
    return join(this.tree, path);
  }

  write(path: string, text: string | Buffer): void {
    mkdirSync(join(this.at(path), ".."), { recursive: true });
    writeFileSync(this.at(path), text);
  }

  git(...args: readonly string[]): string {
    return git(this.tree, ...args);
  }

  commit(subject: string): string {
    this.git("add", "-A");
    this.git("commit", "-q", "--allow-empty", "-m", subject);
    return this.git("rev-parse", "HEAD");
  }

  /** The working tree is as it was pushed. */
  reset(): void {
    this.git("reset", "-q", "--hard", "HEAD");
    this.git("clean", "-qfd");
  }

  push(): void {
    this.git("push", "-q", "--force", "origin", `HEAD:refs/heads/${BRANCH}`);
  }

  /** Somebody else pushes to the session's branch. */
  pushFromElsewhere(files: Readonly<Record<string, string>>): string {
    const clone = join(this.directory, randomUUID());
    git(this.directory, "clone", "-q", this.#bare, clone);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(clone, path, ".."), { recursive: true });
      writeFileSync(join(clone, path), text);
    }
    git(clone, "add", "-A");
    git(clone, "commit", "-q", "-m", "from elsewhere");
    git(clone, "push", "-q", "origin", `HEAD:refs/heads/${BRANCH}`);
    return git(clone, "rev-parse", "HEAD");
  }

  get pushed(): string {
    return git(this.#bare, "rev-parse", BRANCH);
  }

  async #run(command: WorkspaceCommand, body: readonly Frame[] = []): Promise<Buffer> {
    const frames = [wholeFrame(Buffer.from(JSON.stringify(command)))];
    for (const { end, bytes } of body) {
      const whole = wholeFrame(bytes);
      if (end !== "whole") whole[whole.length - 1] = 1;
      frames.push(whole);
    }
    this.#subject.own?.(this.directory, "agent");
    try {
      return await this.#subject.run(Buffer.concat(frames));
    } finally {
      this.#subject.own?.(this.directory, "test");
    }
  }

  #place(tree = this.tree) {
    return { workspace: tree, branch: BRANCH, repoUrl: this.#bare };
  }

  async list(change: Partial<ListRequest> = {}): Promise<Listing> {
    const request = { pushed: this.pushed, base: this.pushed, share: this.share, ...change };
    const { known, contentsSince } = this;
    const output = await this.#run({ ...this.#place(), command: "list", request, known, contentsSince });
    const end = output.indexOf("\n");
    this.kept = JSON.parse(output.subarray(0, end).toString("utf8")) as KeptListing;
    return JSON.parse(output.subarray(end + 1).toString("utf8")) as Listing;
  }

  async read(request: Omit<ReadRequest, "share">): Promise<readonly Frame[]> {
    return framesIn(
      await this.#run({ ...this.#place(), command: "read", request: { ...request, share: this.share } }),
    );
  }

  /** Lists the workspace, and reads all of it. */
  async save(change: Partial<ListRequest> = {}): Promise<SavedWork> {
    const listing = await this.list(change);
    const contents: Frame[] = [];
    const { base, head, heads, items, commits } = listing;
    for (const { repository, ref, commit, within } of commits) {
      if (within !== null) continue;
      const without = repository === "" && base !== null ? [base] : [];
      contents.push(...(await this.read({ items: [], commits: { repository, ref, commit, without } })));
    }
    const wanted = items.flatMap(({ kind, path, object }) =>
      object === null ? [] : [{ kind, path, object }],
    );
    contents.push(...(await this.read({ items: wanted })));
    return { listing, plan: { base, head, heads, items, commits }, contents };
  }

  /** A fresh checkout of the branch gets saves, oldest first. */
  async restore(
    ...saves: readonly SavedWork[]
  ): Promise<{ readonly fresh: Checkout; readonly restored: Restored }> {
    return await this.restoreParts([saves]);
  }

  /** A fresh checkout of the branch gets saves in several deliveries, oldest first. `restored` is of the last one. */
  async restoreParts(
    parts: readonly (readonly SavedWork[])[],
  ): Promise<{ readonly fresh: Checkout; readonly restored: Restored }> {
    const tree = join(this.directory, randomUUID());
    git(this.directory, "clone", "-q", "-b", BRANCH, this.#bare, tree);
    const tip = git(tree, "rev-parse", "HEAD");
    let output: Buffer = Buffer.alloc(0);
    for (const [at, saves] of parts.entries()) {
      const plan: RestorePlan = {
        saves: saves.map((one) => one.plan),
        missing: [],
        notes: ["A note."],
        error: null,
      };
      const body = [
        { end: "whole" as const, bytes: Buffer.from(JSON.stringify(plan)) },
        ...saves.flatMap(({ contents }) => contents),
      ];
      const part = { number: at + 1, isLast: at === parts.length - 1 };
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      output = await this.#run({ ...this.#place(tree), command: "restore", tip, part }, body);
    }
    return { fresh: new Checkout(tree), restored: JSON.parse(output.toString("utf8")) as Restored };
  }

  get checkout(): Checkout {
    return new Checkout(this.tree);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** A checkout to look at. */
export class Checkout {
  readonly tree: string;

  constructor(tree: string) {
    this.tree = tree;
  }

  git(...args: readonly string[]): string {
    return git(this.tree, ...args);
  }

  text(path: string): string {
    return readFileSync(join(this.tree, path), "utf8");
  }

  /** Every file with its mode and content, without git's own directories. */
  get files(): Readonly<Record<string, string>> {
    const files: Record<string, string> = {};
    const walk = (directory: Buffer, path: string): void => {
      for (const entry of readdirSync(directory, { withFileTypes: true, encoding: "buffer" })) {
        const name = entry.name.toString("latin1");
        const whole = Buffer.concat([directory, Buffer.from("/"), entry.name]);
        if (name === ".git") continue;
        if (entry.isDirectory()) walk(whole, `${path}${name}/`);
        else if (entry.isSymbolicLink()) files[path + name] = `-> ${readlinkSync(whole, "latin1")}`;
        else {
          const isProgram = (lstatSync(whole).mode & 0o100) !== 0;
          files[path + name] = `${isProgram ? "x " : ""}${readFileSync(whole, "latin1")}`;
        }
      }
    };
    walk(Buffer.from(this.tree), "");
    return files;
  }

  /** What git says of it. */
  get state() {
    return {
      files: this.files,
      status: this.git("status", "--porcelain", "--branch", "--untracked-files=all").replace(/\.\.\..*/, ""),
      head: this.git("rev-parse", "HEAD"),
    };
  }
}

/** Paths of a listing, by kind. */
export const paths = (items: readonly ListedItem[], kind: ListedItem["kind"] = "file"): readonly string[] =>
  items
    .filter((item) => item.kind === kind)
    .map(({ path }) => path)
    .toSorted();

export type Open = (files?: Readonly<Record<string, string>>) => TestWorkspace;

/** A restoration without a problem. */
export const NOTHING = { skipped: [], renamed: [], error: null };

/** The work comes back as it was: files, HEAD, index and status. */
export const comesBack = async (workspace: TestWorkspace) => {
  const before = workspace.checkout.state;
  const save = await workspace.save();
  const { fresh, restored } = await workspace.restore(save);
  expect(fresh.state).toEqual(before);
  expect(restored).toMatchObject(NOTHING);
  return { save, fresh, restored };
};
