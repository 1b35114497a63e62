/**
 * Looks at saved work (saves.md 7).
 *
 *  N5 The content of an acknowledged save exists again after a restoration, unless its session was deleted meanwhile. A
 *     sandbox that had to save everything goes only once it has. An idle one whose work cannot be saved goes only if its
 *     time is over, or for a slot too many.
 */
import { UNSAVED_MAX_MS } from "../../../src/domain/save/order.ts";
import { isSafe, type Saved } from "../../../src/domain/save/saved.ts";
import type { SaveRequest } from "../../../src/saves/port.ts";
import type { Files } from "../../twins/saves.ts";
import type { Work } from "../world/work.ts";
import type { World } from "../world.ts";

class SavesWatch {
  readonly #world: World;
  readonly #violations: string[];
  /** The content of each session's saves, by the acknowledgements. */
  readonly #acknowledged = new Map<string, Map<string, string>>();
  /** The last answer to a save of each sandbox. */
  readonly #answers = new Map<string, Saved>();
  readonly #seen = new Set<string>();

  constructor(world: World, work: Work, violations: string[]) {
    this.#world = world;
    this.#violations = violations;
    world.saves.onSaved = (request, listed, saved) => this.#note(request, listed, saved);
    work.onWrite = (sandboxId, files) => this.#lookAtRestored(sandboxId, files);
    const former = world.boundary.onEffect;
    world.boundary.onEffect = (call) => {
      former(call);
      if (call.port === "store.Sandboxes.memory" && call.operation === "save") this.#lookAtEnds();
    };
  }

  #note({ sessionId, sandboxId }: SaveRequest, listed: Files, saved: Saved): void {
    this.#world.boundary.hit(`saved ${saved.state}`);
    this.#answers.set(sandboxId, saved);
    const missing = new Set(saved.pending.map(({ path }) => path));
    const known = this.#acknowledged.get(sessionId) ?? new Map<string, string>();
    for (const [path, version] of listed) if (!missing.has(path)) known.set(path, version);
    this.#acknowledged.set(sessionId, known);
  }

  #lookAtRestored(sandboxId: string, files: Files): void {
    this.#world.boundary.hit("restored");
    const { sandboxes, sessions } = this.#world.tables;
    const sessionId = sandboxes.get(sandboxId)?.record.sessionId ?? "";
    // A deleted session's saves are removed, even while its last sandbox still begins.
    if ((sessions.get(sessionId)?.record.deletedAt ?? null) !== null) return;
    for (const path of this.#acknowledged.get(sessionId)?.keys() ?? [])
      if (!files.has(path)) this.#violations.push(`N5 ${path} of ${sessionId} was saved and is not back`);
  }

  #lookAtEnds(): void {
    const { sandboxes, sessions } = this.#world.tables;
    for (const [id, { record, snapshot }] of sandboxes) {
      const { save = null } = snapshot.context;
      if (save === null || this.#seen.has(`${id} ${save} ${record.status}`)) continue;
      this.#seen.add(`${id} ${save} ${record.status}`);
      const session = sessions.get(record.sessionId)?.record;
      if (save === "last" && record.status === "active" && session !== undefined) {
        const { least, most } = this.#world.walls;
        const isOver = session.unsaved !== null && most - session.unsaved.since >= UNSAVED_MAX_MS;
        const others = [...sessions.values()].filter(
          ({ record: other }) =>
            other.accountId === session.accountId && other.unsaved !== null && other.id !== session.id,
        );
        const { cap = 0 } = this.#world.tables.accounts.get(session.accountId) ?? {};
        // An account with one slot has no half of its slots for work that cannot be saved.
        if (!isOver && others.length === 0 && cap > 1 && least > 0)
          this.#violations.push(`N5 ${record.sessionId} goes unsaved before its time`);
      }
      const isEnded = record.status === "stopped" || record.status === "archived";
      const isDemanded = save === "pause" || save === "require";
      if (isEnded && isDemanded && !isSafe(this.#answers.get(id) ?? null))
        this.#violations.push(`N5 ${id} had to save everything, and went without`);
    }
  }
}

/** Does nothing in a world whose agents write nothing. */
export const watchSaves = (world: World, violations: string[]): SavesWatch | null =>
  world.work === null ? null : new SavesWatch(world, world.work, violations);
