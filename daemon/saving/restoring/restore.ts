/* oxlint-disable no-await-in-loop -- contents have an order */
/**
 * Brings saves back into a fresh checkout of the session's branch (saves.md 6). The commits come first, then the index, then the
 * files byte for byte.
 *
 *  R1 Nothing that is on the branch is lost: a branch moves forward only, and a file that was changed there since stays. The
 *     content of an older save is not lost either (older.ts).
 *  R2 Nothing that fails stops the rest. Each path or ref that did not come back is named.
 *  R3 Paths that git would not check out are never written (src/domain/save/checkout-path.ts).
 */
import { isCheckoutPath } from "../../../src/domain/save/checkout-path.ts";
import type { ListedItem, RestoredSave, RestorePlan } from "../../../src/domain/save/listing.ts";
import type { Restored } from "../../../src/domain/save/saved.ts";
import type { BroughtHistory, RestoreCommand } from "../command.ts";
import type { FrameSource } from "../frame-source.ts";
import { restoreHistory } from "./history.ts";
import { IndexEntries } from "./index-entries.ts";
import { Left } from "../left.ts";
import { Older } from "./older.ts";
import { isStatePath } from "../listing/operation.ts";
import { differ, existing } from "../listing/queries.ts";
import { isAncestor, isRelated, Refs } from "./refs.ts";
import { EMPTY_TREE, gitDirectory, Repository } from "../repository.ts";
import { openNested, takePack } from "./commits.ts";
import type { Version } from "../listing/status.ts";
import { writeFault, Writer } from "./write.ts";

const GONE = "000000";
/** How many names are tried for a file beside the branch's. */
const NAMES_MAX = 1000;

export const restoreWorkspace = async (
  { workspace, branch, tip, part, history: place }: RestoreCommand,
  frames: FrameSource,
): Promise<Restored & { readonly history?: BroughtHistory }> => {
  const plan = (await frames.json()) as RestorePlan;
  const repository = new Repository(workspace, gitDirectory(workspace) ?? `${workspace}/.git`);
  const older = new Older(repository.directory, part);
  const restoring = new Restoring(repository, { branch, tip, older });
  for (const save of plan.saves) await restoring.take(save, frames);
  const isWanted = plan.history !== undefined && place !== undefined;
  const history = isWanted ? await restoreHistory(plan.history, place, frames) : null;
  // The service ended in the middle, or its connection. The save stays.
  const error = frames.isBroken
    ? "the saved work did not arrive whole, so restart the session again"
    : plan.error;
  const result = await restoring.finish({ ...plan, error: error ?? closeOlder(older) });
  return { ...result, ...(history !== null && { history }) };
};

/** Null, or why newer saves cannot know what came back. */
const closeOlder = (older: Older): string | null => {
  try {
    older.close();
    return null;
  } catch (error) {
    return `what came back could not be noted: ${writeFault(error)}`;
  }
};

/** How the branch's present tip differs from the one that a save saw. */
interface Meanwhile {
  /** Whether the saved index fits. */
  readonly isSame: boolean;
  /** Whether an older save has moved HEAD to commits that this one does not know. Its entries come on top of them. */
  readonly isMoved: boolean;
  /** Whether HEAD is at the same commit, so that an operation under way can go on. */
  readonly hasHead: boolean;
  readonly changed: ReadonlyMap<string, Version | null>;
}

class Restoring {
  readonly #repository: Repository;
  readonly #branch: string;
  readonly #left = new Left();
  readonly #older: Older;
  readonly #writer: Writer;
  readonly #state: Writer;
  readonly #files = new Set<string>();
  /** Paths of the present save, which no other file may take. */
  #paths: ReadonlySet<string> = new Set();
  /** Contents of the present save's files. */
  #contents: ReadonlySet<string | null> = new Set();
  readonly #refs: string[] = [];
  readonly #renamed: { readonly path: string; readonly as: string }[] = [];
  /** The branch's tip, as it was checked out. */
  #tip: string | null | undefined;

  constructor(
    repository: Repository,
    {
      branch,
      tip,
      older,
    }: { readonly branch: string; readonly tip: string | null | undefined; readonly older: Older },
  ) {
    this.#repository = repository;
    this.#branch = branch;
    this.#tip = tip;
    this.#older = older;
    this.#writer = new Writer(repository.tree);
    this.#state = new Writer(repository.directory);
  }

  async finish({ missing, notes, error }: RestorePlan): Promise<Restored> {
    return {
      wip: null,
      commits: await this.#countCommits(),
      refs: this.#refs,
      files: this.#files.size,
      renamed: this.#renamed,
      skipped: [...missing, ...this.#left.all],
      error,
      ...(notes !== undefined && { notes }),
    };
  }

  /** How many commits the session's branch has again. */
  async #countCommits(): Promise<number> {
    if (this.#tip === undefined || this.#tip === null) return 0;
    const range = `${this.#tip}..refs/heads/${this.#branch}`;
    const { code, stdout } = await this.#repository.run(["rev-list", "--count", range]);
    return code === 0 ? Number(stdout.toString("latin1")) : 0;
  }

  async take(save: RestoredSave, frames: FrameSource): Promise<void> {
    if (this.#tip === undefined) this.#tip = await this.#commitAt("HEAD");
    const tip = this.#tip;
    await this.#takeCommits(save, { frames, tip });
    const meanwhile = await this.#meanwhile(save, tip);
    this.#paths = new Set(save.items.map(({ path }) => path));
    this.#contents = new Set(save.items.flatMap(({ kind, object }) => (kind === "file" ? [object] : [])));
    const { states, staged, lost } = this.#older.begin(save.items);
    for (const name of lost) this.#left.name(name, "newer_save");
    for (const path of states) this.#state.remove(path);
    await this.#startIndex(save, meanwhile);
    for (const { kind, path, mode } of save.items)
      if (kind === "file" && mode === GONE) this.#remove(path, meanwhile);
    const entries = new IndexEntries(this.#repository, this.#left);
    for (const entry of staged) entries.add(entry);
    for (const item of save.items) {
      if (item.kind === "index") await this.#takeEntry(item, { entries, frames, meanwhile });
      else if (item.object !== null && item.kind === "file")
        await this.#takeFile(item, { frames, meanwhile });
      else if (item.object !== null) await this.#takeState(item, { frames, meanwhile });
    }
    await entries.apply();
    for (const head of save.heads) await this.#finishNested(head);
  }

  async #commitAt(name: string): Promise<string | null> {
    const { code, stdout } = await this.#repository.run([
      "rev-parse",
      "--quiet",
      "--verify",
      `${name}^{commit}`,
    ]);
    return code === 0 ? stdout.toString("latin1").trim() : null;
  }

  /** Unpacks commits, and gives them their names. */
  async #takeCommits(
    save: RestoredSave,
    { frames, tip }: { readonly frames: FrameSource; readonly tip: string | null },
  ): Promise<void> {
    for (const commits of save.commits) {
      if (commits.within !== null) continue;
      const repository = await this.#repositoryAt(commits.repository);
      const problem = await takePack(repository, frames);
      if (problem !== null) this.#left.name(placeName(commits.repository, commits.ref), problem);
    }
    for (const place of new Set(["", ...save.commits.map(({ repository }) => repository)])) {
      const repository = await this.#repositoryAt(place);
      if (repository === null) continue;
      const commits = save.commits.filter((one) => one.repository === place);
      const there = new Set(
        await existing(
          repository,
          commits.map(({ commit }) => commit),
        ),
      );
      for (const { ref, commit, within } of commits)
        if (within !== null && !there.has(commit)) this.#left.name(placeName(place, ref), "missing");
      const refs = new Refs(repository, place, this.#left);
      await refs.place(
        commits.filter(({ commit }) => there.has(commit)),
        place === "" ? tip : null,
      );
      if (place === "") await this.#setHead(save, { refs, tip });
      this.#refs.push(...refs.told);
    }
  }

  async #repositoryAt(place: string): Promise<Repository | null> {
    if (place === "") return this.#repository;
    return isCheckoutPath(place) ? openNested(this.#repository.tree, place, this.#writer) : null;
  }

  /** HEAD as it was, if its commit came back and belongs to the branch's history. Otherwise it names the session's branch. */
  async #setHead(
    { head }: RestoredSave,
    { refs, tip }: { readonly refs: Refs; readonly tip: string | null },
  ): Promise<void> {
    const own = `refs/heads/${this.#branch}`;
    const { ref, commit } = head;
    if (ref === own || commit === null || tip === null) return;
    const isThere = (await existing(this.#repository, [commit])).length > 0;
    if (!isThere || !(await isRelated(this.#repository, tip, commit))) {
      if (isThere && ref === null) await refs.keep("HEAD", commit);
      return;
    }
    if (ref === null) return void (await refs.setHead({ commit }));
    if (!refs.landed.has(ref)) await refs.place([{ ref, commit }], tip);
    const headRef = refs.landed.get(ref);
    if (headRef !== undefined) await refs.setHead({ ref: headRef });
  }

  async #meanwhile({ base, head }: RestoredSave, tip: string | null): Promise<Meanwhile> {
    const [now, repository] = [await this.#commitAt("HEAD"), this.#repository];
    const hasHead = head.commit === now;
    const isMoved = tip !== null && now !== tip && !hasHead;
    if (tip === null || base === tip) return { isSame: true, isMoved, hasHead, changed: new Map() };
    const knownCommits = await existing(
      repository,
      [base, head.commit].filter((commit) => commit !== null),
    );
    const hasTip =
      head.commit !== null &&
      knownCommits.includes(head.commit) &&
      (await isAncestor(repository, tip, head.commit));
    if (hasTip) return { isSame: hasHead || isMoved, isMoved, hasHead, changed: new Map() };
    const before = base !== null && knownCommits.includes(base) ? base : EMPTY_TREE;
    const differences = await differ(repository, before, tip);
    return {
      isSame: hasHead,
      isMoved,
      hasHead,
      changed: new Map(differences.map(({ path, after }) => [path, after])),
    };
  }

  /** The index of the commit on which the saved entries are based. Git keeps the file times of unchanged ones. */
  async #startIndex({ head }: RestoredSave, { isSame, isMoved }: Meanwhile): Promise<void> {
    const commit = isSame && !isMoved ? head.commit : null;
    const there = commit === null ? [] : await existing(this.#repository, [commit]);
    const from = there[0] ?? (await this.#commitAt("HEAD"));
    if (from === null) return;
    const { code } = await this.#repository.run(["read-tree", "--reset", from]);
    if (code !== 0) this.#left.name(".git/index", "not_written");
  }

  #remove(path: string, { changed }: Meanwhile): void {
    if (!isCheckoutPath(path)) return this.#left.name(path, "refused_path");
    if (changed.has(path)) {
      if (changed.get(path) !== null) this.#left.name(path, "changed_on_branch");
      return;
    }
    try {
      this.#keepOlder(path, null);
      if (this.#writer.remove(path)) this.#files.add(path);
    } catch (error) {
      this.#left.name(path, writeFault(error));
    }
  }

  async #takeFile(
    item: ListedItem,
    { frames, meanwhile }: { readonly frames: FrameSource; readonly meanwhile: Meanwhile },
  ): Promise<void> {
    const { path, mode, object } = item;
    const now = meanwhile.changed.get(path);
    if (now?.mode === mode && now.object === object) return skip(frames);
    if (!isCheckoutPath(path, mode)) {
      this.#left.name(path, "refused_path");
      return skip(frames);
    }
    if (now === undefined) this.#keepOlder(path, object);
    const as = now === undefined && this.#isFree(path) ? path : this.#nameBeside(path);
    try {
      await this.#writer.take(as, item, frames);
      this.#files.add(as);
      if (object !== null) this.#older.addFile(path, as, object);
      if (as !== path) this.#renamed.push({ path, as });
    } catch (error) {
      this.#left.name(path, writeFault(error));
    }
  }

  /** An older save's file at this path, or in place of a directory above it, gets a name beside. */
  #keepOlder(path: string, object: string | null): void {
    for (const { path: at, isOnly } of this.#older.makeRoom(path, object)) {
      try {
        const as = this.#nameBeside(at);
        if (isOnly) {
          this.#writer.move(at, as);
          this.#renamed.push({ path: at, as });
        } else this.#writer.remove(at);
      } catch (error) {
        this.#left.name(at, writeFault(error));
      }
    }
  }

  /** Whether no directory with content is in its place. */
  #isFree(path: string): boolean {
    try {
      return this.#writer.isFree(path);
    } catch {
      return true;
    }
  }

  #nameBeside(path: string): string {
    for (let number = 1; number < NAMES_MAX; number += 1) {
      const name = `${path}.saved${number === 1 ? "" : `.${number}`}`;
      if (!this.#paths.has(name) && !this.#writer.isThere(name)) return name;
    }
    return `${path}.saved.${NAMES_MAX}`;
  }

  async #takeEntry(
    item: ListedItem,
    {
      entries,
      frames,
      meanwhile,
    }: { readonly entries: IndexEntries; readonly frames: FrameSource; readonly meanwhile: Meanwhile },
  ): Promise<void> {
    const { path, mode, object } = item;
    const isRefused = !isCheckoutPath(path, mode);
    if (!isRefused && meanwhile.isSame) {
      this.#older.addStaged(item);
      return entries.take(item, frames);
    }
    if (isRefused) this.#left.name(path, "refused_path");
    // Nothing is lost if a file comes back with the same content.
    else if (object === null || !this.#contents.has(object)) this.#left.name(path, "staged_elsewhere");
    if (object !== null) await skip(frames);
  }

  async #takeState(
    item: ListedItem,
    { frames, meanwhile }: { readonly frames: FrameSource; readonly meanwhile: Meanwhile },
  ): Promise<void> {
    const { path, object } = item;
    if (!isStatePath(path) || !meanwhile.hasHead) {
      this.#left.name(`.git/${path}`, meanwhile.hasHead ? "refused_path" : "changed_on_branch");
      return skip(frames);
    }
    try {
      await this.#state.take(path, item, frames);
      if (object !== null) this.#older.addState(path, object);
    } catch (error) {
      this.#left.name(`.git/${path}`, writeFault(error));
    }
  }

  async #finishNested({ repository: place, ref, commit }: RestoredSave["heads"][number]): Promise<void> {
    const repository = await this.#repositoryAt(place);
    if (repository === null) return this.#left.name(place, "refused_path");
    const refs = new Refs(repository, place, this.#left);
    const isThere = commit !== null && (await existing(repository, [commit])).length > 0;
    if (commit !== null && !isThere) return this.#left.name(`${place}: HEAD`, "missing");
    const to = ref === null ? (commit === null ? null : { commit }) : { ref };
    if (to !== null) await refs.setHead(to);
    if (isThere) await repository.run(["read-tree", "--reset", "HEAD"]);
  }
}

const placeName = (place: string, ref: string): string => (place === "" ? ref : `${place}: ${ref}`);

const skip = async (frames: FrameSource): Promise<void> => {
  await frames.read(() => undefined);
};
