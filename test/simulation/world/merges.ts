/**
 * Compares the merges in git with the records of change requests (threats.md I17). Git merges a change request while
 * its record is `merging`, and once. At rest the record says `merged` exactly if git has merged.
 */
import * as Effect from "effect/Effect";
import { GitBackend } from "../../../src/git/port.ts";
import type { ChangeRequestRow, TableSet } from "../../twins/store/tables.ts";
import type { Ledger } from "../ledger.ts";
import type { World } from "../world.ts";

/** A merge that moved a branch. */
export interface MadeMerge {
  readonly projectId: string;
  readonly message: string;
  readonly commit: string;
}

/** I17, I19: the unfinished work of a change request. */
export const unendedMerges = (tables: TableSet): readonly string[] => [
  ...[...tables.changeRequestOutbox.actors()].flatMap((id) =>
    tables.changeRequestOutbox
      .of(id)
      .map(({ command }) => `I19 change request ${id} has ${command.type} left to do`),
  ),
  ...[...tables.changeRequests].flatMap(([id, { record, snapshot }]) => {
    if (snapshot.state === "merging") return [`I17 change request ${id} is still merging`];
    return snapshot.state === "open" && record.mergeSides !== null
      ? [`I17 it is unknown whether change request ${id} was merged`]
      : [];
  }),
];

export class Merges {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #violations: string[];
  /** The commit to which git moved the base branch, by change request. */
  readonly #made = new Map<string, string>();
  /** Requests that git merged for an owner that did not know that it is late. */
  readonly #late = new Set<string>();

  constructor(world: World, ledger: Ledger, violations: string[]) {
    this.#world = world;
    this.#ledger = ledger;
    this.#violations = violations;
    world.onMerged = (made) => this.#look(made);
  }

  #look({ projectId, message, commit }: MadeMerge): void {
    this.#world.refresh();
    const number = Number(/^Merge change request #(\d+):/.exec(message)?.[1]);
    const row = [...this.#world.tables.changeRequests.values()].find(
      ({ record }) => record.projectId === projectId && record.number === number,
    );
    if (row === undefined) {
      this.#violations.push(`I17 git has merged ${message}, which is no change request's`);
      return;
    }
    const { id } = row.record;
    const { state } = row.snapshot;
    this.#ledger.tips.set(projectId, commit);
    const isTwice = this.#made.has(id);
    this.#made.set(id, commit);
    if (!isTwice && state === "merging") return;
    if (this.#world.isOwnershipVague) this.#late.add(id);
    else if (isTwice) this.#violations.push(`I17 change request ${id} was merged twice`);
    else this.#violations.push(`I17 git has merged change request ${id}, which is ${state}`);
  }

  /** Every request is what git has made of it, and what people were told. */
  atRest(): readonly string[] {
    const { asked } = this.#ledger;
    return [
      ...[...this.#world.tables.changeRequests.values()].flatMap((row) => this.#ofRow(row)),
      ...asked.flatMap(({ kind, about, answer }) => {
        const told = kind === "merge" ? "merged" : "closed";
        if ((kind !== "merge" && kind !== "close") || answer?.is !== "done") return [];
        const status = this.#world.tables.changeRequests.get(about ?? "")?.record.status;
        return status === told || this.#late.has(about ?? "")
          ? []
          : [
              `R02 somebody was told that change request ${about ?? ""} is ${told}, and it is ${status ?? "not there"}`,
            ];
      }),
    ];
  }

  #ofRow({ record }: ChangeRequestRow): readonly string[] {
    const { id, status, projectId, baseRef, mergeSides, merged } = record;
    if (this.#late.has(id)) return [];
    const isMade = this.#made.has(id);
    if (isMade !== (status === "merged"))
      return [`I17 change request ${id} is ${status}, and git has ${isMade ? "" : "not "}merged it`];
    return [mergeSides?.head, merged?.commit].flatMap((commit) => {
      if (commit === undefined || status !== "merged") return [];
      const sides = { base: baseRef, head: commit };
      const git = Effect.flatMap(GitBackend, ({ compare }) => compare({ projectId }, sides));
      return this.#world.ask(Effect.orDie(git)).commits.length === 0
        ? []
        : [`I17 change request ${id} is merged, and ${baseRef} does not have ${commit}`];
    });
  }
}
