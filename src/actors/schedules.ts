/**
 * What is due when: every cron trigger of the service with its next due instant, in one heap (spec 6 "Cron fires"). Plain
 * data, without a clock: the scheduler asks it what falls due until an instant, a trigger's actor says what is accounted
 * for. Measured by `npm run bench:scheduler`.
 */
import FlatQueue from "flatqueue";
import * as Result from "effect/Result";
import { nextInstant, parseCron } from "../domain/cron.ts";
import type { CronTriggerDefinition } from "../domain/trigger.ts";

/** Entries of the heap that may be stale beyond one for each trigger. */
const STALE_MAX = 1024;

/** The address of a trigger's actor. */
export const triggerActorId = (projectId: string, slug: string): string => `${projectId}/${slug}`;

/** Expression and zone in one text: what instants come from. A trigger whose text is another starts counting anew. */
export const scheduleOf = ({ cron, timezone }: CronTriggerDefinition): string => `${cron} ${timezone}`;

/** The first due instant after another one, in ms; null where there is none. */
const nextDue = ({ cron, timezone }: CronTriggerDefinition, afterMs: number): number | null =>
  nextInstant(Result.getOrThrow(parseCron(cron)), timezone, afterMs);

/** A scheduled trigger. */
export interface Scheduled {
  readonly id: string;
  /** Its prompt, name and agent may change while its schedule stays. */
  definition: CronTriggerDefinition;
  readonly schedule: string;
  /** Since when this process looks after it: what was due before was missed by a downtime (api.md 4). */
  readonly since: number;
  /** The first due instant that is not accounted for; null: there is none any more. */
  due: number | null;
  /** Its actor was told of `due`. */
  told: boolean;
}

/** A trigger as it is to be scheduled. */
export interface Wanted {
  readonly definition: CronTriggerDefinition;
  readonly accountedUntil: number;
}

export class Schedules {
  readonly #byId = new Map<string, Scheduled>();
  readonly #byProject = new Map<string, ReadonlySet<string>>();
  /** Those that wait to be told, by `due`. An entry whose instant is another by now is dropped when it comes up. */
  readonly #heap = new FlatQueue<Scheduled>();
  /** Those that were told and are not accounted for. */
  readonly #told = new Set<Scheduled>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Scheduled | null {
    return this.#byId.get(id) ?? null;
  }

  /**
   * These are the project's cron triggers from now on. One of the same schedule goes on as it was.
   *
   * @returns ids of those that are no more, or of another schedule, whose actors know of an instant.
   */
  replace(projectId: string, wanted: ReadonlyMap<string, Wanted>, now: number): readonly string[] {
    const revoked: string[] = [];
    for (const id of this.#byProject.get(projectId) ?? []) {
      const scheduled = this.#byId.get(id);
      const next = wanted.get(id);
      if (
        scheduled === undefined ||
        (next !== undefined && scheduleOf(next.definition) === scheduled.schedule)
      )
        continue;
      this.#byId.delete(id);
      if (this.#told.delete(scheduled)) revoked.push(id);
      scheduled.due = null;
    }
    for (const [id, { definition, accountedUntil }] of wanted) {
      const known = this.#byId.get(id);
      if (known === undefined) {
        const due = nextDue(definition, accountedUntil);
        const scheduled = { id, definition, schedule: scheduleOf(definition), since: now, due, told: false };
        this.#byId.set(id, scheduled);
        this.#await(scheduled);
      } else known.definition = definition;
    }
    if (wanted.size === 0) this.#byProject.delete(projectId);
    else this.#byProject.set(projectId, new Set(wanted.keys()));
    this.#dropStale();
    return revoked;
  }

  /** Takes what falls due until an instant, earliest first; it counts as told. */
  takeUntil(until: number): readonly Scheduled[] {
    const taken: Scheduled[] = [];
    for (let at = this.#heap.peekValue(); at !== undefined && at <= until; at = this.#heap.peekValue()) {
      const scheduled = this.#heap.pop();
      if (scheduled === undefined || scheduled.due !== at || scheduled.told) continue;
      scheduled.told = true;
      this.#told.add(scheduled);
      taken.push(scheduled);
    }
    return taken;
  }

  /** Those whose actors were told of an instant before this one and have not accounted for it. */
  overdue(before: number): readonly Scheduled[] {
    return [...this.#told].filter(({ due }) => due !== null && due < before);
  }

  /**
   * Every due instant of the trigger up to this one has its row.
   *
   * @returns the next one where it falls due until `until`, for the actor to go on with, which counts as told; else null:
   *   the heap has it.
   */
  accounted(scheduled: Scheduled, { upTo, until }: { readonly upTo: number; readonly until: number }) {
    if (this.#byId.get(scheduled.id) !== scheduled) return null;
    scheduled.due = nextDue(scheduled.definition, upTo);
    scheduled.told = scheduled.due !== null && scheduled.due <= until;
    if (scheduled.told) {
      this.#told.add(scheduled);
      return scheduled.due;
    }
    this.#told.delete(scheduled);
    this.#await(scheduled);
    return null;
  }

  /**
   * Stale entries keep definitions alive, and their manifest's text with them, until they come up: in a year, for some.
   * Once they are more than half of the heap it is made anew.
   */
  #dropStale(): void {
    if (this.#heap.length <= 2 * this.#byId.size + STALE_MAX) return;
    this.#heap.clear();
    for (const scheduled of this.#byId.values()) if (!scheduled.told) this.#await(scheduled);
    this.#heap.shrink();
  }

  #await(scheduled: Scheduled): void {
    if (scheduled.due !== null) this.#heap.push(scheduled, scheduled.due);
  }
}
