/**
 * How soon things happen while nothing goes wrong (threats.md I13): a free slot goes to who waits for it, and an admitted
 * session begins. What a disturbance left behind is for the recovery to find, and excused.
 */
import type { TableSet } from "../../src/store/memory/tables.ts";

/** Longest that either may take, ms. */
const SOON_MS = 5_000;

interface Seen {
  readonly since: number;
  readonly excused: boolean;
}

/** What is owed now, by a name that stays as long as it is. */
export const owedNow = (tables: TableSet): readonly string[] => [
  ...[...tables.accounts].flatMap(([id, { activeSessions, cap }]) => {
    const waits = tables.queue.some(({ accountId }) => accountId === id);
    return waits && activeSessions < cap ? [`I13 account ${id} has a free slot and waiting fires`] : [];
  }),
  ...[...tables.sessionOutbox.actors()].flatMap((id) =>
    tables.sessionOutbox
      .of(id)
      .flatMap(({ id: command, command: { type } }) =>
        type === "createBranch" ? [`I13 session ${id} was admitted and does not begin (${command})`] : [],
      ),
  ),
];

export class Calm {
  #seen = new Map<string, Seen>();

  /** @returns what has been owed for too long. */
  look(tables: TableSet, { elapsed, isCalm }: { readonly elapsed: number; readonly isCalm: boolean }) {
    const seen = new Map<string, Seen>();
    for (const owed of owedNow(tables)) {
      const former = this.#seen.get(owed) ?? { since: elapsed, excused: false };
      seen.set(owed, { ...former, excused: former.excused || !isCalm });
    }
    this.#seen = seen;
    return [...seen].flatMap(([owed, { since, excused }]) =>
      !excused && elapsed - since > SOON_MS ? [`${owed}, for ${elapsed - since} ms`] : [],
    );
  }

  /** Something went wrong: what is owed now may be late. */
  disturb(): void {
    for (const [owed, seen] of this.#seen) this.#seen.set(owed, { ...seen, excused: true });
  }
}
