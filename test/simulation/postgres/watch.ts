/**
 * What must hold in every snapshot (threats.md I1, I6, I8, I10, I12, I14): over Postgres the tables are read between
 * steps, all of one instant.
 */
import * as Effect from "effect/Effect";
import { GitBackend } from "../../../src/git/port.ts";
import { mint } from "../world/tokens.ts";
import {
  deletedFaults,
  doubleFaults,
  lastFiredOf,
  liveByAccount,
  regressions,
  runningFaults,
  slotFaults,
  type FormerAccounts,
  type LastFired,
} from "../oracles/watch.ts";
import type { World } from "../world.ts";

export class SnapshotWatch {
  readonly violations: string[] = [];
  readonly #world: World;
  /** Between two looks a session may start and the cap be lowered, in this order. */
  #former: FormerAccounts = { live: new Map() };
  #lastFired: LastFired = new Map();

  constructor(world: World) {
    this.#world = world;
    world.boundary.onEffect = ({ port, operation, about }) => {
      if (port === "provider" && operation === "create") this.#lookAtCreate(about);
    };
  }

  look(): void {
    const { tables, distorted } = this.#world;
    const lastFired = lastFiredOf(tables);
    this.violations.push(
      ...slotFaults(tables, this.#former, distorted),
      ...doubleFaults(tables),
      ...runningFaults(tables),
      ...deletedFaults(tables),
      ...regressions(this.#lastFired, lastFired),
    );
    const caps = new Map([...tables.accounts].map(([id, { cap }]) => [id, cap]));
    this.#former = { live: liveByAccount(tables), caps };
    this.#lastFired = lastFired;
    this.#world.cursors.look(tables);
  }

  /** I8: by now the session has its branch, and the sandbox has its record. */
  #lookAtCreate(sandboxId: string): void {
    this.#world.refresh();
    const { tables } = this.#world;
    const session = tables.sessions.get(tables.sandboxes.get(sandboxId)?.record.sessionId ?? "")?.record;
    if (session === undefined) {
      this.violations.push(`I8 the sandbox ${sandboxId} was created without a session`);
      return;
    }
    this.#world.keepSecret(sandboxId);
    mint(this.#world, { sessionId: session.id, sandboxId });
    const tip = this.#world.ask(
      Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId: session.projectId }, session.id)),
    );
    if (tip === null) this.violations.push(`I8 the sandbox of ${session.id} was created before its branch`);
  }
}
