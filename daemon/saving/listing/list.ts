/**
 * Lists what the workspace has beside the session's pushed branch (src/domain/save/listing.ts).
 *
 *  L1 One pass of `git status` finds what changed, by the file times in the index. Only changed files are read.
 *  L2 It writes nothing to the workspace. No filter of the repository runs.
 *  L3 A path or ref that cannot be listed is named, or counted with its class.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { ListedCommits, ListedItem, Listing } from "../../../src/domain/save/listing.ts";
import { DEFAULT_CONFIG_DIR } from "../../../src/domain/manifest/config-dir.ts";
import {
  CONTENTS_BYTES,
  type KeptListing,
  type KnownFile,
  type ListCommand,
  type ListedContent,
} from "../command.ts";
import { listHistory } from "./history.ts";
import { headTip, listCommits, localTips } from "./commits.ts";
import { digest, Tree, type Digested } from "../content.ts";
import { Left } from "../left.ts";
import { Pace } from "../pace.ts";
import { nestedRepositories, type Nested } from "./nested.ts";
import { stateFiles, stateTips } from "./operation.ts";
import { EMPTY_TREE, gitDirectory, GitFailure, Repository } from "../repository.ts";
import {
  differ,
  existing,
  gitlinks,
  lastSeen,
  otherWorktrees,
  workTreeStatus,
  trackedPaths,
} from "./queries.ts";
import { countSpecials } from "./specials.ts";
import { Scratch } from "../scratch.ts";
import { GITLINK, listedMode, type Change, type Difference, type Status, type Version } from "./status.ts";

/** Files of this size are not read again while they seem unchanged, bytes. */
const KNOWN_BYTES = 64 * 1024;
/** A file that changed so shortly before may change again without another time, ns. */
const SAME_TIME_NS = 2_000_000_000n;
/** The longest listing. */
const LISTING_BYTES = 64 * 1024 * 1024;

const GONE: ListedItem["mode"] = "000000";

const inNs = (ms: number): bigint => BigInt(ms) * 1_000_000n;

interface Found {
  readonly listing: Listing;
  readonly kept: KeptListing;
}

export const listWorkspace = async (command: ListCommand): Promise<Found> => {
  const lister = new Lister(command);
  try {
    return await lister.list();
  } finally {
    lister.scratch.remove();
  }
};

/** The pushed commit with the paths that differ between it and HEAD. `base` null: the commit could not be had. */
interface Pushed {
  readonly base: string | null;
  readonly differences: readonly Difference[];
}

class Lister {
  readonly scratch: Scratch;
  readonly #command: ListCommand;
  readonly #tree: Tree;
  readonly #pace: Pace;
  readonly #left = new Left();
  readonly #items: ListedItem[] = [];
  readonly #known: KnownFile[] = [];
  readonly #contents: ListedContent[] = [];
  #room = CONTENTS_BYTES;
  readonly #formerly: ReadonlyMap<string, KnownFile>;

  constructor(command: ListCommand) {
    this.#command = command;
    this.scratch = new Scratch(command.workspace);
    this.#tree = new Tree(command.workspace);
    this.#pace = new Pace(command.request.share ?? 1);
    this.#formerly = new Map(command.known.map((file) => [file.path, file]));
  }

  async list(): Promise<Found> {
    const { own, repository, status } = await this.#open();
    const pushState = await this.#pushed(repository, status);
    const repositories = await this.#nested(repository, status);
    await this.#files({ repository, status, pushed: pushState, nested: repositories });
    const commits = own === null ? [] : await this.#ownState(own, own === repository ? status : null);
    const place = this.#command.history;
    const history = place === undefined ? null : listHistory(place, this.#left);
    const listing = {
      base: pushState.base,
      head: own === repository ? status.head : { ref: null, commit: null },
      heads: repositories.flatMap(({ repository: path, head }) =>
        head === null ? [] : [{ repository: path, ...head }],
      ),
      items: this.#items,
      commits: [...commits, ...repositories.flatMap((one) => one.commits)],
      left: this.#left.all,
      ...(history !== null && { history }),
    };
    return { listing, kept: { known: this.#known, contents: this.#contents } };
  }

  /** The workspace's own repository. If it has none that works, an empty one with its objects takes its place. */
  async #open() {
    const { workspace } = this.#command;
    const directory = gitDirectory(workspace);
    const own = directory === null ? null : new Repository(workspace, directory);
    if (own !== null) {
      try {
        return { own, repository: own, status: await workTreeStatus(own, this.#left) };
      } catch (error) {
        if (!(error instanceof GitFailure)) throw error;
        this.#left.name(".git", "broken_repository");
      }
    }
    const repository = await this.scratch.open();
    if (own !== null) repository.borrow(own);
    return { own, repository, status: await workTreeStatus(repository, this.#left) };
  }

  /** Compares HEAD with the pushed commit, which is fetched if the repository does not have it. */
  async #pushed(repository: Repository, { head: { commit } }: Status): Promise<Pushed> {
    const { pushed, base } = this.#command.request;
    if (pushed === null) return { base: null, differences: [] };
    if (pushed === commit) return { base: pushed, differences: [] };
    if ((await existing(repository, [pushed])).length === 0) {
      const isSameHistory = base !== null && (await existing(repository, [base])).length > 0;
      const isFetched = await this.scratch
        .fetch(pushed, this.#command, isSameHistory ? repository : null)
        .catch(() => false);
      if (!isFetched) return { base: null, differences: [] };
      const scratch = await this.scratch.open();
      if (scratch !== repository) repository.borrow(scratch);
    }
    const lastPushed = commit === null ? pushed : await lastSeen(repository, pushed, commit);
    return { base: lastPushed, differences: await differ(repository, lastPushed, commit ?? EMPTY_TREE) };
  }

  /** Repositories inside the workspace, with their files. */
  async #nested(repository: Repository, status: Status): Promise<readonly Nested[]> {
    const places = status.untracked.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1));
    const links = new Set(status.changes.filter((change) => isLink(change)).map(({ path }) => path));
    const changedPaths = new Set(links);
    const hasModules = lstatSync(join(repository.tree, ".gitmodules"), { throwIfNoEntry: false });
    if (hasModules !== undefined) for (const path of await gitlinks(repository)) links.add(path);
    return nestedRepositories({
      workspace: this.#command.workspace,
      places,
      links: [...links].map((path) => ({ path, isChanged: changedPaths.has(path) })),
      left: this.#left,
    });
  }

  async #files(sides: {
    readonly repository: Repository;
    readonly status: Status;
    readonly pushed: Pushed;
    readonly nested: readonly Nested[];
  }): Promise<void> {
    const { repository, status, pushed, nested } = sides;
    const changes = new Map(status.changes.map((change) => [change.path, change]));
    const before = new Map<string, Version | null>();
    for (const change of status.changes) before.set(change.path, change.head);
    for (const path of status.untracked) if (!path.endsWith("/")) before.set(path, before.get(path) ?? null);
    for (const difference of pushed.differences) {
      const { path, after } = difference;
      // Git was told not to have this one in the work tree.
      const isHidden = after !== null && !changes.has(path) && this.#tree.look(path) === "missing";
      if (!isHidden) before.set(path, difference.before);
    }
    if (pushed.base === null) for (const path of await trackedPaths(repository)) before.set(path, null);
    for (const [path, version] of await this.#filtered(sides)) before.set(path, before.get(path) ?? version);
    for (const [path, version] of before) {
      // oxlint-disable-next-line no-await-in-loop -- the rest between two files
      await this.#pace.rest();
      this.#file(path, version);
    }
    for (const { files } of nested) for (const path of files) this.#file(path, null);
    for (const path of withoutRuntimes(status.ignored)) this.#left.count(path, "ignored");
    countSpecials(this.#command.workspace, status.ignored, this.#left);
  }

  /**
   * Files with a content filter that the session has changed. Git does not have their content, and where that
   * is, a filter's own server, may not have it.
   */
  async #filtered({
    repository,
    status: {
      head: { commit },
    },
  }: {
    readonly repository: Repository;
    readonly status: Status;
  }): Promise<ReadonlyMap<string, Version | null>> {
    const { base } = this.#command.request;
    if (commit === null || base === null || base === commit || !(await repository.stopFilters()))
      return new Map();
    if ((await existing(repository, [base])).length === 0) return new Map();
    const differences = await differ(repository, base, commit);
    const paths = differences.filter(({ after }) => after !== null && after.mode !== GITLINK);
    const input = paths.map(({ path }) => `${path}\0`).join("");
    const records = await repository.records(["check-attr", "-z", "--stdin", "filter"], input);
    return new Map(
      paths.flatMap(({ path, after }, at) =>
        ["unspecified", "unset", ""].includes(records[3 * at + 2] ?? "") ? [] : [[path, after]],
      ),
    );
  }

  /** @param before what the pushed commit has there */
  #file(path: string, before: Version | null): void {
    const content = digest(this.#tree, path, this.#formerly.get(path));
    if (content === "unreadable") return this.#left.name(path, content);
    if (typeof content === "string") {
      if (before !== null && before.mode !== GITLINK)
        this.#items.push({ kind: "file", path, mode: GONE, size: 0, object: null });
      return;
    }
    const { mode, size, object, stamp } = content;
    const changedNs = BigInt(stamp.split(" ")[2] ?? 0);
    // oxlint-disable-next-line no-restricted-properties -- this program has the machine's clock, as the files have
    const isSettled = inNs(Date.now()) - changedNs > SAME_TIME_NS;
    if (size >= KNOWN_BYTES && isSettled) this.#known.push({ path, stamp, object });
    if (before !== null && before.object === object && listedMode(before.mode) === mode) return;
    this.#items.push({ kind: "file", path, mode, size, object });
    if (changedNs > inNs(this.#command.contentsSince) - SAME_TIME_NS) this.#carry(content);
  }

  #carry({ object, content }: Digested): void {
    if (content === null || content.length > this.#room) return;
    this.#room -= content.length;
    this.#contents.push({ object, base64: content.toString("base64") });
  }

  /** The index, an operation under way, and the commits. @param status null: git cannot read the index */
  async #ownState(own: Repository, status: Status | null): Promise<readonly ListedCommits[]> {
    try {
      if (status !== null) await this.#index(own, status.changes);
      const files = stateFiles(own);
      this.#stateFiles(own, files);
      for (const path of otherWorktrees(own)) this.#left.name(path, "worktree");
      const tips = [...headTip(status), ...(await localTips(own)), ...(await stateTips(own, files))];
      const { pushed, base } = this.#command.request;
      const knownCommits = [pushed, base].filter((commit) => commit !== null);
      if (tips.every(({ commit }) => knownCommits.includes(commit))) return [];
      return await listCommits(own, {
        tips,
        without: await existing(own, knownCommits),
        path: "",
        left: this.#left,
      });
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error;
      this.#left.name(".git", "broken_repository");
      return [];
    }
  }

  #stateFiles(own: Repository, files: readonly string[]): void {
    const directory = new Tree(own.directory);
    for (const path of files) {
      const content = digest(directory, path);
      if (typeof content === "string") this.#left.count(`.git/${path}`, content);
      else {
        const { mode, size, object } = content;
        this.#items.push({ kind: "state", path, mode, size, object });
      }
    }
  }

  async #index(own: Repository, changes: readonly Change[]): Promise<void> {
    const entries = changes.filter(({ isStaged }) => isStaged).flatMap((change) => indexEntries(change));
    const objects = entries.flatMap(({ object }) => (object === null ? [] : [object]));
    const sizes =
      objects.length === 0
        ? []
        : await own.lines(
            ["cat-file", "--batch-check=%(objecttype) %(objectsize)"],
            `${objects.join("\n")}\n`,
          );
    let at = 0;
    for (const { path, mode, object, stage } of entries) {
      const itemMode = listedMode(mode);
      if (object === null) this.#items.push({ kind: "index", path, mode: GONE, size: 0, object });
      else {
        const [, size] = /^blob (\d+)$/.exec(sizes[at] ?? "") ?? [];
        at += 1;
        if (itemMode === null) this.#left.count(path, "submodule");
        else if (size === undefined) this.#left.name(path, "missing_object");
        else
          this.#items.push({
            kind: "index",
            path,
            mode: itemMode,
            size: Number(size),
            object,
            ...(stage > 0 && { stage }),
          });
      }
    }
  }
}

interface IndexEntry {
  readonly path: string;
  readonly mode: string;
  readonly object: string | null;
  readonly stage: 0 | 1 | 2 | 3;
}

const indexEntries = ({ path, index, stages }: Change): readonly IndexEntry[] => {
  if (stages.length > 0) return stages.map((stage) => ({ path, ...stage }));
  return [{ path, mode: index?.mode ?? GONE, object: index?.object ?? null, stage: 0 }];
};

const isLink = ({ mode, index, head }: Change): boolean =>
  mode === GITLINK || index?.mode === GITLINK || head?.mode === GITLINK;

/** Directories in which the agent runtime installs what it needs. It hides that by a .gitignore that hides itself. */
const RUNTIME_DIRS = [DEFAULT_CONFIG_DIR, ".opencode"];
const RUNTIME_FILES = [".gitignore", "node_modules/", "package.json", "package-lock.json", "bun.lock"];

/** The ignored paths without those that the runtime made for itself. */
export const withoutRuntimes = (paths: readonly string[]): readonly string[] => {
  const own = new Set<string>();
  for (const directory of RUNTIME_DIRS) {
    // Otherwise the repository itself ignores the directory, and git does not say what else is in it.
    if (!paths.includes(`${directory}/.gitignore`)) continue;
    for (const name of RUNTIME_FILES) own.add(`${directory}/${name}`);
  }
  return paths.filter((path) => !own.has(path));
};

/** @throws if it is too long to be sent */
export const listingText = (listing: Listing): Buffer => {
  const text = Buffer.from(JSON.stringify(listing));
  if (text.length > LISTING_BYTES)
    throw new Error(
      `the workspace has too many changed files: their list has more than ${LISTING_BYTES} bytes`,
    );
  return text;
};
