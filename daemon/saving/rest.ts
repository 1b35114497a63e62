/**
 * Gathers the content of the workspace's git that is neither HEAD nor a file, and that the remote lacks: commits of
 * other branches, tags, stashes, the index, operations in progress, other worktrees. One commit, the rest, leads to all
 * of it.
 *
 *  R1 Everything that the rest omits is listed as skipped.
 *  R2 If the rest cannot be gathered, the files are stored without it.
 */
import * as Effect from "effect/Effect";
import { SaveFailure, type Draft } from "./draft.ts";
import { type LocalRef, type LocalRefs, type OtherWorktree } from "./local-refs.ts";
import { describeObjects, type Described, type RemoteRefs } from "./remote-refs.ts";
import { writeRest, type Contents, type TreeEntry } from "./rest-commit.ts";
import type { Skipped, SkipReason } from "./skipped.ts";
import { INDEX, OPERATION, takeTree, type TakenTree } from "./taken-tree.ts";

/** How many branches, tags and stashes one save stores. */
const MAX_REFS = 500;
const MAX_WORKTREES = 16;
/** How large their history beyond HEAD and the remote may be, in bytes as git stores it. */
const MAX_HISTORY_BYTES = 100 * 1024 * 1024;
/** How many refs are measured separately if all together are too large. */
const MAX_MEASURED = 32;
/** How long one worktree, or the choice of commits, may take. */
const STEP_DEADLINE = "5 seconds";

/** The rest's commit, and the names of its parts for the case that they are not stored. */
export interface Rest {
  readonly commit: string;
  readonly parts: readonly string[];
}

export interface Gathering {
  readonly draft: Draft;
  readonly skipped: Skipped;
  readonly main: TakenTree;
  readonly remote: RemoteRefs;
  readonly local: LocalRefs;
}

interface Taken extends OtherWorktree {
  readonly tree: TakenTree;
}

/** @returns null if there is nothing other than HEAD and the files. */
export const gatherRest = (gathering: Gathering): Effect.Effect<Rest | null, SaveFailure> =>
  new Gatherer(gathering).run;

class Gatherer {
  readonly #draft: Draft;
  readonly #skipped: Skipped;
  readonly #main: TakenTree;
  readonly #remote: RemoteRefs;
  readonly #local: LocalRefs;

  constructor({ draft, skipped, main, remote, local }: Gathering) {
    this.#draft = draft;
    this.#skipped = skipped;
    this.#main = main;
    this.#remote = remote;
    this.#local = local;
  }

  get run(): Effect.Effect<Rest | null, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      this.#nameForeign();
      const worktrees = yield* this.#takeWorktrees;
      const chosen = yield* Effect.catch(this.#choose(worktrees), () =>
        Effect.sync(() => this.#chooseNone()),
      );
      const changed = worktrees.filter(({ tree }) => holdsSomething(tree));
      const contents: Contents = {
        ...chosen,
        entries: [
          ...chosen.entries,
          ...entriesOf("", this.#main),
          ...changed.flatMap(({ tree }, at) => [
            { name: `worktree-${at + 1}`, type: "tree" as const, object: tree.files },
            ...entriesOf(`worktree-${at + 1}-`, tree),
          ]),
        ],
        worktrees: changed.map(({ path }, at) => `worktree-${at + 1} ${path}`),
      };
      if (contents.refs.length + contents.entries.length + contents.parents.length === 0) return null;
      const parts = [
        ...contents.refs.map(({ name }) => name),
        ...(this.#main.index === null && this.#main.conflicts.length === 0 ? [] : [INDEX]),
        ...(this.#main.operation === null ? [] : [OPERATION]),
        ...changed.map(({ path }) => path),
      ];
      return { commit: yield* writeRest(this.#draft, contents), parts };
    });
  }

  /** Another remote's refs are not the session's work, and their history may have any size. */
  #nameForeign(): void {
    const known = new Set(this.#remote.refs.values());
    for (const [remote, objects] of this.#local.foreign)
      if (objects.some((object) => !known.has(object)))
        this.#skipped.add(`refs/remotes/${remote}/*`, "foreign");
  }

  get #takeWorktrees(): Effect.Effect<readonly Taken[], SaveFailure> {
    const { worktrees } = this.#local;
    for (const { path } of worktrees.slice(MAX_WORKTREES)) this.#skipped.add(path, "too_many_worktrees");
    return Effect.map(
      Effect.forEach(worktrees.slice(0, MAX_WORKTREES), (worktree, at) =>
        this.#takeWorktree(worktree, at + 1),
      ),
      (taken) => taken.flatMap((tree) => tree ?? []),
    );
  }

  #takeWorktree(worktree: OtherWorktree, number: number): Effect.Effect<Taken | null> {
    const directory = Buffer.from(worktree.path, "latin1").toString();
    const { workspace } = this.#draft.settings.layout;
    const leaveOut = (reason: SkipReason): null => {
      this.#skipped.add(worktree.path, reason);
      return null;
    };
    return Effect.gen({ self: this }, function* () {
      // A directory that contains the workspace itself is not a separate worktree.
      if (/\n|\ufffd/.test(directory) || `${workspace}/`.startsWith(`${directory.replace(/\/$/, "")}/`))
        return leaveOut("unreadable");
      const isThere = { name: "worktree", script: "test -e .git" };
      const { code } = yield* this.#draft.tryInTree(directory, isThere);
      if (code !== 0) return leaveOut("missing_worktree");
      const skipped = this.#skipped.within(`${worktree.path}/`);
      const tree = yield* takeTree(this.#draft, { directory, number, skipped });
      const inside = Buffer.from(`${workspace}/`).toString("latin1");
      if (worktree.path.startsWith(inside)) this.#skipped.remove(`${worktree.path.slice(inside.length)}/`);
      return { ...worktree, tree };
    }).pipe(
      Effect.timeoutOrElse({
        duration: STEP_DEADLINE,
        orElse: () => Effect.sync(() => leaveOut("slow")),
      }),
      Effect.catch(() => Effect.sync(() => leaveOut("unreadable"))),
    );
  }

  /** The refs worth storing, and the commits that all parts need. */
  #choose(worktrees: readonly Taken[]): Effect.Effect<Omit<Contents, "worktrees">, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const candidates = [...this.#candidates, ...headsOf(worktrees)];
      const operations = [this.#main, ...worktrees.map(({ tree }) => tree)].flatMap(
        ({ operation }) => operation?.commits ?? [],
      );
      const names = [...candidates.map(({ object }) => object), ...operations];
      const objects = yield* describeObjects(
        this.#draft,
        names.flatMap((name) => [name, `${name}^{}`]),
      );
      const targets = new Map<string, Described>();
      for (const { name, object } of candidates) {
        const target = objects.get(`${object}^{}`);
        if (target === undefined) this.#skipped.add(name, "unreadable");
        else targets.set(object, target);
      }
      const commits = [...targets.values()]
        .filter(({ type }) => type === "commit")
        .map(({ object }) => object);
      const named = operations
        .flatMap((name) => objects.get(name) ?? [])
        .filter(({ type }) => type === "commit");
      const unknown = yield* this.#unknown([...commits, ...named.map(({ object }) => object)]);
      const wanted = candidates.filter(({ ref, object }) => {
        const target = targets.get(object);
        if (target === undefined || this.#remote.refs.get(ref) === object) return false;
        return target.type !== "commit" || ref.startsWith("refs/tags/") || unknown.has(target.object);
      });
      const targetOf = ({ object }: LocalRef): string => targets.get(object)?.object ?? object;
      const kept = yield* this.#withinBounds(wanted, (ref) => {
        const target = targetOf(ref);
        return unknown.has(target) ? target : null;
      });
      const beyond = named.map(({ object }) => object).filter((object) => unknown.has(object));
      const loose = kept.flatMap((ref) => targets.get(ref.object) ?? []);
      return {
        refs: kept,
        parents: tipsOf(
          [...loose.filter(({ type }) => type === "commit").map(({ object }) => object), ...beyond],
          unknown,
        ),
        tags: [...new Set(kept.map(({ object }) => object))].filter(
          (object) => objects.get(object)?.type === "tag",
        ),
        entries: uniqueEntries(
          loose.flatMap(({ object, type }) =>
            type === "tree" || type === "blob" ? [{ name: `object-${object}`, type, object }] : [],
          ),
        ),
      };
    });
  }

  /** Used if histories cannot be read, or not in time. */
  #chooseNone(): Omit<Contents, "worktrees"> {
    for (const { name } of this.#candidates) this.#skipped.add(name, "unreadable");
    return { refs: [], parents: [], tags: [], entries: [] };
  }

  /** All refs except HEAD's and the session branch's: those are parents of the saved commit itself. */
  get #candidates(): readonly LocalRef[] {
    const own = `refs/heads/${this.#draft.settings.branch}`;
    return this.#local.refs.filter(({ ref }) => ref !== own && ref !== this.#main.headRef);
  }

  /** Commits that both the remote and HEAD lack, each with its parents. */
  #unknown(commits: readonly string[]): Effect.Effect<ReadonlyMap<string, readonly string[]>, SaveFailure> {
    const asked = [...new Set(commits)];
    if (asked.length === 0) return Effect.succeed(new Map());
    const script = "git rev-list --parents --stdin";
    const input = lines([...asked, ...this.#excluded]);
    const listing = this.#draft.inDraft({ name: "unknown", script, input });
    return Effect.map(this.#inTime(listing), (listed) => {
      const rows = listed.toString("latin1").split("\n");
      return new Map(
        rows.flatMap((row) => {
          const [commit = "", ...parents] = row.split(" ");
          return commit === "" ? [] : [[commit, parents]];
        }),
      );
    });
  }

  get #excluded(): readonly string[] {
    return this.#remote.known.map((object) => `^${object}`);
  }

  /** As many refs as the limits allow, in order. The others are listed as skipped. */
  #withinBounds(
    refs: readonly LocalRef[],
    tipOf: (ref: LocalRef) => string | null,
  ): Effect.Effect<readonly LocalRef[], SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      for (const { name } of refs.slice(MAX_REFS)) this.#skipped.add(name, "too_many");
      const first = refs.slice(0, MAX_REFS);
      const tips = first.flatMap((ref) => tipOf(ref) ?? []);
      if ((yield* this.#size(tips)) <= MAX_HISTORY_BYTES) return first;
      const kept: LocalRef[] = [];
      const keptTips: string[] = [];
      for (const [at, ref] of first.entries()) {
        const tip = tipOf(ref);
        const fits =
          tip === null || (at < MAX_MEASURED && (yield* this.#size([...keptTips, tip])) <= MAX_HISTORY_BYTES);
        if (!fits) this.#skipped.add(ref.name, "too_much");
        else {
          kept.push(ref);
          if (tip !== null) keptTips.push(tip);
        }
      }
      return kept;
    });
  }

  #size(tips: readonly string[]): Effect.Effect<number, SaveFailure> {
    if (tips.length === 0) return Effect.succeed(0);
    const { head, branch } = this.#main;
    const stored = [head, branch].flatMap((commit) => (commit === null ? [] : [`^${commit}`]));
    const input = lines([...tips, ...this.#excluded, ...stored]);
    const script = "git rev-list --objects --disk-usage --stdin";
    const measuring = this.#draft.inDraft({ name: "size", script, input });
    return Effect.map(this.#inTime(measuring), (size) => Number(size.toString()));
  }

  #inTime<A>(step: Effect.Effect<A, SaveFailure>): Effect.Effect<A, SaveFailure> {
    return Effect.timeoutOrElse(step, {
      duration: STEP_DEADLINE,
      orElse: () => Effect.fail(new SaveFailure({ message: `git did not finish within ${STEP_DEADLINE}` })),
    });
  }
}

const lines = (revisions: readonly string[]): Buffer =>
  Buffer.from(revisions.map((one) => `${one}\n`).join(""));

const holdsSomething = ({ isClean, index, conflicts, operation }: TakenTree): boolean =>
  !isClean || index !== null || conflicts.length > 0 || operation !== null;

/** Only detached heads: a branch is among the refs anyway. */
const headsOf = (worktrees: readonly Taken[]): LocalRef[] =>
  worktrees.flatMap(({ path, head, isDetached }, at) =>
    head === null || !isDetached
      ? []
      : [{ name: `${path} (HEAD)`, ref: `refs/worktrees/${at + 1}/HEAD`, object: head }],
  );

/** The saved parts of one work tree other than its files, under names with a common prefix. */
const entriesOf = (prefix: string, { index, conflicts, operation }: TakenTree): TreeEntry[] => [
  ...(index === null ? [] : [{ name: `${prefix}index`, type: "tree" as const, object: index }]),
  ...conflicts.map(([stage, object]) => ({
    name: `${prefix}conflicts-${stage}`,
    type: "tree" as const,
    object,
  })),
  ...(operation === null ? [] : [{ name: `${prefix}state`, type: "tree" as const, object: operation.tree }]),
];

const uniqueEntries = (entries: readonly TreeEntry[]): readonly TreeEntry[] => [
  ...new Map(entries.map((entry) => [entry.name, entry])).values(),
];

/**
 * A minimal set of these commits from which all others are reachable. If an unknown commit is reachable from another
 * one, it is the parent of an unknown one, because everything behind a known commit is known.
 */
const tipsOf = (
  commits: readonly string[],
  unknown: ReadonlyMap<string, readonly string[]>,
): readonly string[] => {
  const reached = new Set([...unknown.values()].flat());
  return [...new Set(commits)].filter((commit) => !unknown.has(commit) || !reached.has(commit));
};
