/** The steps that concern change requests: agents push to their branches, and people propose, merge and close. */
import * as Effect from "effect/Effect";
import { GitBackend } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import * as RequestEndpoints from "../../../src/features/change-requests/handlers.ts";
import type { ChangeRequest } from "../../../src/features/change-requests/ports/change-requests.ts";
import { accountOf, type Ask } from "./asking.ts";
import type { Ledger } from "../ledger.ts";
import { manifestOf } from "../world/manifests.ts";
import { PROJECTS } from "../oracles/settled.ts";
import type { World } from "../world.ts";

const MANIFEST = "platform.toml";
const MANIFEST_BYTES = 1024 * 1024;

type Which = Pick<ChangeRequest, "id" | "projectId" | "number">;

/** The newest one, which is the likeliest to be under way, or any. */
const pick = <A>(rows: readonly A[], which: number): A | undefined =>
  which % 2 === 0 ? rows.at(-1) : rows[(which >> 1) % Math.max(1, rows.length)];

export class Requests {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #ask: Ask;

  constructor(world: World, ledger: Ledger, ask: Ask) {
    this.#world = world;
    this.#ledger = ledger;
    this.#ask = ask;
  }

  /** A session's branch is proposed, with a commit of its own; now and then it is merged as soon as it is open. */
  propose(which: number, how: number): void {
    const row = pick([...this.#world.tables.sessions.values()], which)?.record;
    if (row === undefined || !this.#push(row.projectId, row.id, how)) return;
    const { projectId, id } = row;
    const account = accountOf(row);
    const done = (value: unknown): void => {
      const { id: request, number } = value as ChangeRequest;
      if (how % 3 === 0) this.#merge({ id: request, projectId, number });
    };
    const open = RequestEndpoints.open(projectId, { session_id: id, title: `work ${how}` });
    this.#ask("propose", { account, id: null, done }, open);
  }

  merge(which: number, how: number): void {
    const record = this.#pick(which);
    if (record === undefined) return;
    this.#merge(record);
    // Two people at once; an agent that goes on.
    if (how % 3 === 0) this.#merge(record);
    if (how % 8 === 1) this.#push(record.projectId, record.headRef, how);
  }

  close(which: number, how: number): void {
    const record = this.#pick(which);
    if (record === undefined) return;
    if (how % 3 === 0) this.#merge(record);
    const { projectId, number, id } = record;
    const close = RequestEndpoints.close({ pid: projectId, number });
    this.#ask("close", { account: this.#accountOf(projectId), id }, close);
    if (how % 3 === 1) this.#merge(record);
  }

  #pick(which: number): ChangeRequest | undefined {
    const rows = [...this.#world.tables.changeRequests.values()];
    const open = rows.filter(({ record }) => record.status === "open");
    return pick(which % 8 === 0 ? rows : open, which >> 1)?.record;
  }

  #accountOf(projectId: string): number {
    return PROJECTS.find(({ id }) => id === projectId)?.account ?? 0;
  }

  #merge({ projectId, number, id }: Which): void {
    const merge = RequestEndpoints.merge({ pid: projectId, number }, {});
    this.#ask("merge", { account: this.#accountOf(projectId), id }, merge);
  }

  /** One of four changes the manifest, so that merges conflict and bring triggers. @returns false if the branch does not exist. */
  #push(projectId: string, branch: string, how: number): boolean {
    const repository = { projectId };
    const git = <A>(use: (backend: GitBackend["Service"]) => Effect.Effect<A, unknown>) =>
      this.#world.ask(Effect.orDie(Effect.flatMap(GitBackend, use)));
    const onto = git(({ branchTip }) => branchTip(repository, branch));
    const main = git(({ branchTip }) => branchTip(repository, "main"));
    if (onto === null || main === null) return false;
    const file = { commit: main, path: MANIFEST, maxBytes: MANIFEST_BYTES };
    const known = git(({ readFile }) => readFile(repository, file));
    const manifest = how % 4 === 1 ? manifestOf(how) : Buffer.from(known ?? []).toString("utf8");
    const files = { [MANIFEST]: manifest, [`work/${branch}`]: String(how) };
    const commit = { branch, onto, files, subject: `work ${this.#ledger.tick()}` };
    this.#world.ask(Effect.flatMap(SimulatedRepositories, (pushes) => pushes.commit(repository, commit)));
    return true;
  }
}
