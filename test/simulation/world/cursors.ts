/** From when on each cron trigger owes a row for every due instant (threats.md I3). */
import type { TableSet } from "../../twins/store/tables.ts";
import { PERIODS } from "./manifests.ts";

interface Owing {
  readonly schedule: string;
  readonly since: number;
}

export class Cursors {
  readonly #owing = new Map<string, Owing>();

  /** A schedule that is new, or another, owes from here on; one that is gone owes nothing any more. */
  look(tables: TableSet): void {
    const present = new Set<string>();
    for (const [projectId, cursors] of tables.cursors) {
      for (const { slug, schedule, accountedUntil } of cursors.values()) {
        const trigger = `${projectId}/${slug}`;
        present.add(trigger);
        if (this.#owing.get(trigger)?.schedule !== schedule)
          this.#owing.set(trigger, { schedule, since: accountedUntil });
      }
    }
    for (const trigger of this.#owing.keys()) if (!present.has(trigger)) this.#owing.delete(trigger);
  }

  /**
   * The earliest due instant without a row of each trigger: by the store's state, and the clock of the trigger's
   * instants.
   */
  due(tables: TableSet, clockOf: (trigger: string) => number): readonly string[] {
    return [...tables.cursors].flatMap(([projectId, cursors]) =>
      [...cursors.values()].flatMap(({ slug, schedule, accountedUntil }) => {
        const trigger = `${projectId}/${slug}`;
        const period = PERIODS.get(schedule);
        if (period === undefined) return [];
        const due = (Math.floor(accountedUntil / period) + 1) * period;
        return due <= clockOf(trigger)
          ? [`C13 the instant ${new Date(due).toISOString()} of ${trigger} is due and has no row`]
          : [];
      }),
    );
  }

  /** I3: due instants until `until` that have no row. */
  unaccounted(tables: TableSet, until: number): readonly string[] {
    const rows = new Set(
      [...tables.fires.values()].flatMap(({ kind, projectId, triggerSlug, scheduledFor, replayOf, status }) =>
        kind === "cron" && replayOf === null && status !== "duplicate"
          ? [`${projectId}/${triggerSlug} ${scheduledFor}`]
          : [],
      ),
    );
    const faults: string[] = [];
    for (const [trigger, { schedule, since }] of this.#owing) {
      const period = PERIODS.get(schedule);
      if (period === undefined) continue;
      for (let due = (Math.floor(since / period) + 1) * period; due <= until; due += period) {
        if (!rows.has(`${trigger} ${due}`))
          faults.push(`I3 the instant ${new Date(due).toISOString()} of ${trigger} has no row`);
      }
    }
    return faults;
  }
}
