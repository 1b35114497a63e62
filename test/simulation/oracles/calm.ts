/**
 * The speed of the service while nothing goes wrong (threats.md I13): a waiting fire gets a free slot, an admitted
 * session begins, and a due instant has its row. Effects of a disturbance are left to recovery and are excused.
 */
import type { TableSet } from "../../twins/store/tables.ts";

/** For so long after it was over a disturbance excuses what is late, ms. */
export const AFTERMATH_MS = 6_000;

/** Longest that the former two may take, ms. */
const SOON_MS = 5_000;
/** Longest that a due instant's row may take from when it was seen to be due, ms. It is looked at once a second. */
const PUNCTUAL_MS = 2_000;

/** So long after a disturbance what it left behind is found, ms: two polls of the scheduler and what the row takes. */
const FOUND_MS = 40_000;

interface Seen {
  readonly since: number;
  readonly excused: boolean;
}

export interface Moment {
  readonly elapsed: number;
  readonly isCalm: boolean;
  /** What cron triggers owe now, by names that stay; whether no clock was set lately. */
  readonly due: readonly string[];
  readonly areClocksCalm: boolean;
}

/** The work that is owed now, by a name that stays the same as long as it is owed. */
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
  /** Since when it has been calm, in ms of `elapsed`. */
  #calmSince = 0;

  /** @returns the work that has been owed for too long. */
  look(tables: TableSet, { elapsed, isCalm, due, areClocksCalm }: Moment) {
    if (!isCalm || !areClocksCalm) this.#calmSince = elapsed;
    const seen = new Map<string, Seen>();
    const see = (owed: string, isExcused: boolean): void => {
      const former = this.#seen.get(owed) ?? { since: elapsed, excused: false };
      seen.set(owed, { ...former, excused: former.excused || isExcused });
    };
    for (const owed of owedNow(tables)) see(owed, !isCalm);
    for (const owed of due) see(owed, !isCalm || !areClocksCalm);
    this.#seen = seen;
    const instants = new Set(due);
    return [...seen].flatMap(([owed, { since, excused }]) => {
      const waited = elapsed - since;
      const isInstant = instants.has(owed);
      const isLate = !excused && waited > (isInstant ? PUNCTUAL_MS : SOON_MS);
      const isForgotten = isInstant && elapsed - Math.max(since, this.#calmSince) > FOUND_MS;
      return isLate || isForgotten ? [`${owed}, for ${waited} ms`] : [];
    });
  }

  /** Something went wrong: what is owed now may be late. */
  disturb(): void {
    for (const [owed, seen] of this.#seen) this.#seen.set(owed, { ...seen, excused: true });
  }
}
