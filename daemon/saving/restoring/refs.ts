/* oxlint-disable no-await-in-loop -- refs have an order */
/**
 * Puts restored commits under names: their own, if nothing is lost by that, else `saved/<branch>` beside it. A newer save's commits take
 * the name from those of an older save.
 */
import type { ListedCommits } from "../../../src/domain/save/listing.ts";
import type { Left } from "../left.ts";
import type { Repository } from "../repository.ts";

const HEADS = "refs/heads/";
const STASH = /^refs\/stash\/(\d+)$/;
/** Keeps the commits that state files name. */
const KEPT = "refs/saved/";

type Commit = Pick<ListedCommits, "ref" | "commit">;

export const isAncestor = async (repository: Repository, one: string, other: string): Promise<boolean> =>
  (await repository.run(["merge-base", "--is-ancestor", one, other])).code === 0;

/** Whether two commits have a common history. */
export const isRelated = async (repository: Repository, one: string, other: string): Promise<boolean> =>
  (await repository.run(["merge-base", one, other])).code === 0;

/** The text of a name in an argument, whose bytes are latin1 text. */
export const argument = (name: string): string => Buffer.from(name, "latin1").toString();

const moveRef = async (repository: Repository, ref: string, commit: string): Promise<boolean> =>
  (await repository.run(["update-ref", "-m", "restored", argument(ref), commit])).code === 0;

export class Refs {
  readonly #repository: Repository;
  readonly #left: Left;
  /** In front of each name that is told: where a nested repository is. */
  readonly #place: string;
  /** Where the branches of the save are now. */
  readonly landed = new Map<string, string>();
  readonly told: string[] = [];
  /** The commits of the branches. */
  #branches: Map<string, string> | null = null;

  constructor(repository: Repository, place: string, left: Left) {
    this.#repository = repository;
    this.#place = place === "" ? "" : `${place}: `;
    this.#left = left;
  }

  /** @param tip the commit with which a branch must have history in common to take its own name. If null, any may */
  async place(commits: readonly Commit[], tip: string | null): Promise<void> {
    for (const one of commits) {
      if (one.ref.startsWith(HEADS)) await this.#branch(one, tip);
      else if (one.ref.startsWith("state/")) await moveRef(this.#repository, `${KEPT}${one.ref}`, one.commit);
    }
    const stashes = commits.flatMap(({ ref, commit }) => {
      const [, number] = STASH.exec(ref) ?? [];
      return number === undefined ? [] : [{ number: Number(number), commit }];
    });
    // The newest is put on top of the others.
    for (const { number, commit } of stashes.toSorted((one, other) => other.number - one.number))
      await this.#stash(number, commit);
  }

  /** Gives commits without a branch a name. @returns the ref */
  async keep(name: string, commit: string): Promise<string | null> {
    for (let number = 1; number < 100; number += 1) {
      const ref = `${HEADS}saved/${name}${number === 1 ? "" : `-${number}`}`;
      const there = (await this.#current()).get(ref);
      if (there !== undefined && there !== commit) continue;
      if (there === undefined && !(await this.#set(ref, commit))) continue;
      this.#tell(ref.slice(HEADS.length));
      return ref;
    }
    this.#left.name(`${this.#place}${name}`, "not_written");
    return null;
  }

  async #branch({ ref, commit }: Commit, tip: string | null): Promise<void> {
    const name = ref.slice(HEADS.length);
    const there = (await this.#current()).get(ref);
    const isOwn = tip === null || (await isRelated(this.#repository, tip, commit));
    const mayMove = isOwn && (there === undefined || (await isAncestor(this.#repository, there, commit)));
    if (there !== undefined && (await isAncestor(this.#repository, commit, there))) {
      this.landed.set(ref, ref);
    } else if (there !== undefined && (await this.#isOlder({ there, commit, tip }))) {
      if ((await this.keep(name, there)) !== null && (await this.#set(ref, commit))) this.#tell(name);
      this.landed.set(ref, ref);
    } else if (mayMove && (await this.#set(ref, commit))) {
      this.landed.set(ref, ref);
      this.#tell(name);
    } else {
      const keptRef = await this.keep(name, commit);
      if (keptRef !== null) this.landed.set(ref, keptRef);
    }
  }

  /** Whether a branch is where only an older save can have moved it: both follow the commit that was checked out. */
  async #isOlder({
    there,
    commit,
    tip,
  }: {
    readonly there: string;
    readonly commit: string;
    readonly tip: string | null;
  }): Promise<boolean> {
    if (tip === null || there === tip) return false;
    const follows = (one: string) => isAncestor(this.#repository, tip, one);
    return (await follows(there)) && (await follows(commit));
  }

  async #stash(number: number, commit: string): Promise<void> {
    const [newest] = await this.#repository.lines(["for-each-ref", "--format=%(objectname)", "refs/stash"]);
    if (newest === commit) return;
    const { stdout } = await this.#repository.run(["log", "-1", "--format=%s", commit]);
    const subject = stdout.toString("utf8").trim() || "restored";
    const args = ["update-ref", "--create-reflog", "-m", subject, "refs/stash", commit];
    if ((await this.#repository.run(args)).code === 0) this.#tell(`stash@{${number}}`);
    else this.#left.name(`${this.#place}stash@{${number}}`, "not_written");
  }

  #tell(name: string): void {
    this.told.push(`${this.#place}${name}`);
  }

  async #set(ref: string, commit: string): Promise<boolean> {
    if (!(await moveRef(this.#repository, ref, commit))) return false;
    (await this.#current()).set(ref, commit);
    return true;
  }

  async #current(): Promise<Map<string, string>> {
    if (this.#branches === null) {
      const lines = await this.#repository.lines([
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        HEADS,
      ]);
      this.#branches = new Map(lines.map((line) => [line.slice(41), line.slice(0, 40)]));
    }
    return this.#branches;
  }

  /** Makes HEAD name a branch, or a commit. @returns whether it does */
  async setHead(to: { readonly ref: string } | { readonly commit: string }): Promise<boolean> {
    const args =
      "ref" in to
        ? ["symbolic-ref", "HEAD", argument(to.ref)]
        : ["update-ref", "--no-deref", "-m", "restored", "HEAD", to.commit];
    return (await this.#repository.run(args)).code === 0;
  }
}
