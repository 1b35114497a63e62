/**
 * The twin of every backend, in memory: branches, tags, commits and files with the port's semantics, but without git's
 * formats. A commit's id is the hash of its content, so the same history has the same ids in every run. `commit` and
 * `tag` replace pushes to a real repository.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { createHash } from "node:crypto";
import {
  initialCommit,
  parseBaseRef,
  parseBranchName,
  parseDefaultBranch,
} from "../../../src/domain/repository/git-ref.ts";
import {
  type Comparison,
  type DiffRequest,
  type FileCommit,
  GitBackend,
  GitError,
  type MergeResult,
  type MergeRequest,
  type Repository,
} from "../../../src/git/port.ts";
import { maxCommits, maxFiles } from "../../../src/git/repository/compare.ts";
import { firstBranches } from "../../../src/git/repository/refs.ts";
import {
  changedPaths,
  linesOf,
  listPaths,
  mergedFiles,
  objectId,
  readTree,
  same,
  textOf,
  withoutFile,
} from "./tree.ts";

/** A file's text, with or without permission to run it, or a path that is not a file. */
export type SimulatedEntry =
  | string
  | { readonly executable: string }
  | { readonly symlink: string }
  | { readonly submodule: string };

export interface SimulatedCommit {
  readonly branch: string;
  /** The parent. Null begins a separate history. */
  readonly onto: string | null;
  /** The whole tree, not a change. */
  readonly files: Readonly<Record<string, SimulatedEntry>>;
  readonly subject: string;
}

/** The twin's own operations, in place of pushes. */
export class SimulatedRepositories extends Context.Service<
  SimulatedRepositories,
  {
    /** Creates a commit and moves the branch to it, from any tip. @returns the commit's id. */
    readonly commit: (repository: Repository, commit: SimulatedCommit) => Effect.Effect<string, GitError>;
    readonly tag: (repository: Repository, name: string, commit: string) => Effect.Effect<void, GitError>;
  }
>()("platform/git/SimulatedRepositories") {}

interface Commit {
  readonly sha: string;
  /** None, one, or the two sides of a merge, with the receiving branch first. */
  readonly parents: readonly string[];
  readonly subject: string;
  readonly author: string;
  /** ms since the epoch. */
  readonly at: number;
  readonly files: ReadonlyMap<string, SimulatedEntry>;
}

interface State {
  head: string;
  readonly branches: Map<string, string>;
  readonly tags: Map<string, string>;
  readonly commits: Map<string, Commit>;
}

const beginning = Date.UTC(2000, 0, 1);

const error = (code: GitError["code"], message: string): GitError => new GitError({ code, message });

const defaultBranchFault = (branch: string): GitError | null => {
  const parsed = parseDefaultBranch(branch);
  if (Result.isSuccess(parsed)) return null;
  const { code, message } = parsed.failure;
  return error(code === "session_branch" ? "reserved_branch" : "unknown_ref", message);
};

/** The commit and its ancestors. A commit comes before its ancestors, so a linear history is newest first. */
const historyOf = (state: State, sha: string): Commit[] => {
  const parentsOf = (at: string) => state.commits.get(at)?.parents ?? [];
  /** For each ancestor, how many of its descendants are not listed yet. */
  const waitsFor = new Map<string, number>();
  const reached = [sha];
  for (const at of reached) {
    for (const parent of parentsOf(at)) {
      if (!waitsFor.has(parent)) reached.push(parent);
      waitsFor.set(parent, (waitsFor.get(parent) ?? 0) + 1);
    }
  }
  const listed = [sha];
  for (const at of listed) {
    for (const parent of parentsOf(at)) {
      const left = (waitsFor.get(parent) ?? 0) - 1;
      waitsFor.set(parent, left);
      if (left === 0) listed.push(parent);
    }
  }
  return listed.flatMap((at) => state.commits.get(at) ?? []);
};

const commitOf = (state: State, side: string): Effect.Effect<Commit, GitError> => {
  const commit = state.commits.get(state.branches.get(side) ?? side);
  return commit === undefined
    ? Effect.fail(error("unknown_ref", `Branch or commit ${side} not found.`))
    : Effect.succeed(commit);
};

const commitAt = (state: State, id: string): Effect.Effect<Commit, GitError> => {
  const commit = state.commits.get(id);
  return commit === undefined
    ? Effect.fail(error("unknown_ref", `Commit ${id} not found.`))
    : Effect.succeed(commit);
};

interface Sides {
  readonly mergeBase: Commit | null;
  readonly base: Commit;
  readonly head: Commit;
}

const sidesOf = Effect.fnUntraced(function* (state: State, request: { base: string; head: string }) {
  const [base, head] = yield* Effect.all([commitOf(state, request.base), commitOf(state, request.head)]);
  const ancestors = new Set(historyOf(state, base.sha));
  const mergeBase = historyOf(state, head.sha).find((commit) => ancestors.has(commit)) ?? null;
  const sides: Sides = { mergeBase, base, head };
  return sides;
});

/** A file that both sides changed differently conflicts: the twin does not merge lines. */
const conflictsOf = ({ mergeBase, base, head }: Sides): readonly string[] => {
  if (mergeBase === null) return [];
  const theirs = new Set(changedPaths(mergeBase.files, base.files));
  return changedPaths(mergeBase.files, head.files).filter(
    (path) => theirs.has(path) && !same(base.files.get(path), head.files.get(path)),
  );
};

const compare = (state: State, sides: Sides): Comparison => {
  const { mergeBase, base, head } = sides;
  const from = mergeBase?.files ?? new Map<string, SimulatedEntry>();
  const known = new Set(historyOf(state, base.sha));
  const conflicts = conflictsOf(sides);
  const commits = historyOf(state, head.sha)
    .filter((commit) => !known.has(commit))
    .map(({ sha, subject, author, at }) => ({
      sha,
      subject,
      authorName: author,
      committedAt: new Date(at).toISOString(),
    }));
  const filesChanged = changedPaths(from, head.files).map((path) => {
    const [before, after] = [linesOf(from.get(path)), linesOf(head.files.get(path))];
    return {
      path,
      additions: after.filter((line) => !before.includes(line)).length,
      deletions: before.filter((line) => !after.includes(line)).length,
    };
  });
  return {
    base: base.sha,
    head: head.sha,
    mergeBase: mergeBase?.sha ?? null,
    commitsTotal: commits.length,
    filesTotal: filesChanged.length,
    linesTotal: {
      additions: filesChanged.reduce((sum, { additions }) => sum + additions, 0),
      deletions: filesChanged.reduce((sum, { deletions }) => sum + deletions, 0),
    },
    commits: commits.slice(0, maxCommits),
    filesChanged: filesChanged.slice(0, maxFiles),
    mergeable: mergeBase !== null && conflicts.length === 0,
    conflicts,
  };
};

const diff = (
  { mergeBase, head }: Sides,
  { maxBytes, path: file }: Omit<DiffRequest, "base" | "head">,
): string => {
  const from = mergeBase?.files ?? new Map<string, SimulatedEntry>();
  const text = changedPaths(from, head.files)
    .filter((path) => file === undefined || path === file)
    .map((path) => {
      const before = linesOf(from.get(path)).map((line) => `-${line}\n`);
      const after = linesOf(head.files.get(path)).map((line) => `+${line}\n`);
      return `diff --git a/${path} b/${path}\n${before.join("")}${after.join("")}`;
    })
    .join("");
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const whole = bytes.subarray(0, bytes.subarray(0, maxBytes).lastIndexOf(0x0a) + 1).toString("utf8");
  return `${whole}[The diff is longer than ${maxBytes} bytes and was cut here.]\n`;
};

const resolveBase = (state: State, ref: string): Effect.Effect<string, GitError> => {
  const parsed = parseBaseRef(ref);
  if (Result.isFailure(parsed)) return Effect.fail(error("unknown_ref", parsed.failure.message));
  const { name, commit } = parsed.success;
  const reachable = [...state.branches.values()].some((tip) =>
    historyOf(state, tip).some(({ sha }) => sha === commit),
  );
  const found = state.branches.get(name) ?? state.tags.get(name) ?? (reachable ? commit : null);
  return found === null
    ? Effect.fail(error("unknown_ref", `${name} is not a branch, a tag or a reachable commit.`))
    : Effect.succeed(found);
};

const createBranch = (state: State, branch: string, commit: string): Effect.Effect<void, GitError> => {
  const parsed = parseBranchName(branch);
  if (Result.isFailure(parsed)) return Effect.fail(error("unknown_ref", parsed.failure.message));
  if (!state.commits.has(commit)) return Effect.fail(error("unknown_ref", `Commit ${commit} not found.`));
  const tip = state.branches.get(branch) ?? commit;
  if (tip !== commit) {
    return Effect.fail(error("branch_conflict", `The branch ${branch} already exists at another commit.`));
  }
  state.branches.set(branch, commit);
  return Effect.void;
};

const commitFile = Effect.fnUntraced(function* (state: State, request: FileCommit) {
  const { branch, parent, file, content, message, author, at } = request;
  const onto = state.commits.get(parent);
  if (onto === undefined) return yield* error("unknown_ref", `Commit ${parent} not found.`);
  const sha = createHash("sha1").update(JSON.stringify(request)).digest("hex");
  const files = new Map(onto.files).set(file, content);
  const [subject = ""] = message.split("\n");
  state.commits.set(sha, { sha, parents: [parent], subject, author: author.name, at, files });
  yield* createBranch(state, branch, sha);
  return sha;
});

interface FileRequest {
  readonly commit: string;
  readonly path: string;
  readonly maxBytes: number;
}

const readFile = Effect.fnUntraced(function* (state: State, { commit, path, maxBytes }: FileRequest) {
  const { files } = yield* commitOf(state, commit);
  const entry = files.get(path);
  const isDirectory = [...files.keys()].some((name) => name.startsWith(`${path}/`));
  const text = textOf(entry);
  if (isDirectory || (entry !== undefined && text === null)) {
    return yield* error("not_a_file", `${path} is a directory, a symbolic link or a submodule, not a file.`);
  }
  if (text === null) return null;
  const bytes = new Uint8Array(Buffer.from(text));
  if (bytes.length <= maxBytes) return bytes;
  return yield* error("file_too_large", `${path} has ${bytes.length} bytes. The limit is ${maxBytes} bytes.`);
});

const commitTo = (state: State, request: SimulatedCommit): string => {
  const sha = createHash("sha1").update(JSON.stringify(request)).digest("hex");
  const { onto, subject, files, branch } = request;
  const parents = onto === null ? [] : [onto];
  const commit = { sha, parents, subject, author: "Simulated", at: beginning };
  state.commits.set(sha, { ...commit, files: new Map(Object.entries(files)) });
  state.branches.set(branch, sha);
  return sha;
};

/** Whether the base has every change of the head. */
const changesNothing = (mergeBase: Commit, base: Commit, head: Commit): boolean =>
  changedPaths(base.files, mergedFiles(mergeBase, base, head)).length === 0;

const hasChanges = Effect.fnUntraced(function* (
  state: State,
  request: Pick<MergeRequest, "branch" | "head">,
) {
  if (!state.branches.has(request.branch) || !state.commits.has(request.head)) return null;
  const sides = yield* sidesOf(state, { base: request.branch, head: request.head });
  const { mergeBase, base, head } = sides;
  if (mergeBase === null || conflictsOf(sides).length > 0) return null;
  return changesNothing(mergeBase, base, head) ? base.sha : null;
});

/** In one step: in memory nothing moves meanwhile. */
const merge = Effect.fnUntraced(function* (state: State, request: MergeRequest) {
  const { branch, message, at } = request;
  if (!state.branches.has(branch)) return yield* error("unknown_ref", `Branch ${branch} not found.`);
  if (!state.commits.has(request.head))
    return yield* error("unknown_ref", `Commit ${request.head} not found.`);
  const sides = yield* sidesOf(state, { base: branch, head: request.head });
  const { mergeBase, base, head } = sides;
  if (mergeBase === head) return { outcome: "contained", base: base.sha } satisfies MergeResult;
  const paths = conflictsOf(sides);
  if (mergeBase === null || paths.length > 0) {
    return { outcome: "conflict", base: base.sha, paths } satisfies MergeResult;
  }
  const [subject = ""] = message.split("\n");
  const sha = createHash("sha1")
    .update(JSON.stringify({ base: base.sha, request }))
    .digest("hex");
  const squash = request.squash === true;
  if (squash && changesNothing(mergeBase, base, head))
    return { outcome: "contained", base: base.sha } satisfies MergeResult;
  const over: Commit = {
    sha,
    parents: squash ? [base.sha] : [base.sha, head.sha],
    subject,
    author: squash ? head.author : "Platform",
    at,
    files: mergedFiles(mergeBase, base, head),
  };
  const commit = mergeBase === base && !squash ? head : over;
  state.commits.set(commit.sha, commit);
  state.branches.set(branch, commit.sha);
  return { outcome: "merged", base: base.sha, commit: commit.sha } satisfies MergeResult;
});

const emptyState = (head: string): State => {
  const empty: Commit = {
    sha: initialCommit,
    parents: [],
    subject: "Initial commit",
    author: "Platform",
    at: beginning,
    files: new Map(),
  };
  return {
    head,
    branches: new Map([[head, initialCommit]]),
    tags: new Map(),
    commits: new Map([[initialCommit, empty]]),
  };
};

const createIn = (
  repositories: Map<string, State>,
  { projectId, importFrom, defaultBranch }: Parameters<GitBackend["Service"]["create"]>[0],
) => {
  const fault = defaultBranchFault(defaultBranch ?? "main");
  if (fault !== null) return Effect.fail(fault);
  if (importFrom !== null)
    return Effect.fail(error("import_failed", "The simulated backend does not support imports."));
  const state = repositories.get(projectId) ?? emptyState(defaultBranch ?? "main");
  repositories.set(projectId, state);
  return Effect.succeed({ defaultBranch: state.head });
};

/** The twin. It has no outside world, so imports fail (`import_failed`). */
export const simulatedBackend: Layer.Layer<GitBackend | SimulatedRepositories> = Layer.effectContext(
  Effect.sync(() => {
    const repositories = new Map<string, State>();
    const at = <A>({ projectId }: Repository, use: (state: State) => Effect.Effect<A, GitError>) =>
      Effect.suspend(() => {
        const state = repositories.get(projectId);
        return state === undefined
          ? Effect.fail(
              error("unknown_repository", "This service does not host a repository for the project."),
            )
          : use(state);
      });
    const backend = GitBackend.of({
      create: (request) => Effect.suspend(() => createIn(repositories, request)),
      checkUpstream: () => Effect.fail(error("git_failed", "The simulated backend has no server to ask.")),
      setDefaultBranch: (repository, branch) =>
        at(repository, (state) => {
          const fault = defaultBranchFault(branch);
          if (fault !== null) return Effect.fail(fault);
          if (!state.branches.has(branch))
            return Effect.fail(error("unknown_ref", `Branch ${branch} not found.`));
          state.head = branch;
          return Effect.void;
        }),
      remove: ({ projectId }) => Effect.sync(() => void repositories.delete(projectId)),
      resolveBase: (repository, ref) => at(repository, (state) => resolveBase(state, ref)),
      branchTip: (repository, branch) =>
        at(repository, (state) => {
          const isName = Result.isSuccess(parseBranchName(branch));
          return Effect.succeed(isName ? (state.branches.get(branch) ?? null) : null);
        }),
      hasChanges: (repository, request) => at(repository, (state) => hasChanges(state, request)),
      // No earlier version saved here.
      removeOldSave: () => Effect.void,
      branches: (repository, { limit }) =>
        at(repository, ({ branches }) =>
          Effect.succeed(firstBranches([...branches.keys()].toSorted(), limit)),
        ),
      createBranch: (repository, { branch, commit }) =>
        at(repository, (state) => createBranch(state, branch, commit)),
      commitFile: (repository, request) => at(repository, (state) => commitFile(state, request)),
      readFile: (repository, request) => at(repository, (state) => readFile(state, request)),
      // Nothing unpacks it.
      pack: (repository, { commit, maxBytes }) =>
        at(repository, (state) =>
          Effect.as(commitAt(state, commit), maxBytes === 0 ? null : Buffer.from(commit)),
        ),
      objectIds: (repository, { commit, paths, without }) =>
        at(repository, (state) =>
          Effect.map(commitAt(state, commit), ({ files }) => {
            const counted = withoutFile(files, without);
            return paths.map((path) => objectId(counted, path));
          }),
        ),
      readTree: (repository, request) =>
        at(repository, (state) =>
          Effect.flatMap(commitAt(state, request.commit), ({ files }) => readTree(files, request)),
        ),
      paths: (repository, { commit, limit }) =>
        at(repository, (state) =>
          Effect.map(commitAt(state, commit), ({ files }) => listPaths(files, limit)),
        ),
      compare: (repository, request) =>
        at(repository, (state) => Effect.map(sidesOf(state, request), (sides) => compare(state, sides))),
      diff: (repository, request) =>
        at(repository, (state) => Effect.map(sidesOf(state, request), (sides) => diff(sides, request))),
      merge: (repository, request) => at(repository, (state) => merge(state, request)),
    });
    const pushes = SimulatedRepositories.of({
      commit: (repository, commit) => at(repository, (state) => Effect.sync(() => commitTo(state, commit))),
      tag: (repository, name, commit) =>
        at(repository, (state) => Effect.sync(() => void state.tags.set(name, commit))),
    });
    return Context.make(GitBackend, backend).pipe(Context.add(SimulatedRepositories, pushes));
  }),
);
