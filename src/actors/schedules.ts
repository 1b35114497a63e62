/**
 * When the cron triggers of this node have to look at their due instants: one entry a trigger, in one heap (spec 6 "Cron
 * fires"). Plain data, without a clock. Measured by `npm run bench:scheduler`.
 *
 *  E1 A trigger has an entry on the node where its actor lives, and on no other. The scheduler decides that (`keep`, `drop`).
 *  E2 When it looks next is its actor's to say (`arm`), after the first time, which comes from the store's cursor.
 *  E3 An entry that rang stays until it is armed anew: a lost message costs time, never an instant.
 */
import FlatQueue from "flatqueue";
import * as Result from "effect/Result";
import { nextInstant, parseCron } from "../domain/cron.ts";
import type { CronTriggerDefinition } from "../domain/trigger.ts";
import type { NextInstant } from "../machines/trigger.ts";

/** Entries of the heap that may be stale beyond one for each trigger. */
const STALE_MAX = 1024;

/** The address of a trigger's actor. */
export const triggerActorId = (projectId: string, slug: string): string => `${projectId}/${slug}`;

const projectOf = (id: string): string => id.slice(0, id.indexOf("/"));

/** Expression and zone in one text: what instants come from. A trigger whose text is another starts counting anew. */
export const scheduleOf = ({ cron, timezone }: CronTriggerDefinition): string => `${cron} ${timezone}`;

/** The first due instant after another one, in ms; null where there is none. */
export const nextDue = ({ cron, timezone }: CronTriggerDefinition, afterMs: number): number | null =>
  nextInstant(Result.getOrThrow(parseCron(cron)), timezone, afterMs);

/** A trigger that waits. */
export interface Scheduled {
  readonly id: string;
  readonly schedule: string;
  /** When it looks next, in ms since the epoch. */
  readonly due: number;
  /** When it was told to look, in ms since the epoch; null: its time has not come. */
  readonly rangAt: number | null;
}

interface Entry extends Scheduled {
  due: number;
  rangAt: number | null;
}

export class Schedules {
  /** By project, then by id. */
  readonly #projects = new Map<string, Map<string, Entry>>();
  /** Those that wait, by `due`. What stands there for another instant than its entry's is stale and dropped when it comes up. */
  readonly #heap = new FlatQueue<Entry>();
  /** Those that rang, the first one first. */
  readonly #rung = new Set<Entry>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The earliest instant at which something may fall due. */
  get first(): number {
    return this.#heap.peekValue() ?? Infinity;
  }

  get(id: string): Scheduled | null {
    return this.#entry(id) ?? null;
  }

  /**
   * The project has exactly these entries from now on. One of the same schedule goes on as it was, unless it rang: its actor
   * may have looked by another definition, so it is set anew.
   */
  keep(projectId: string, wanted: ReadonlyMap<string, NextInstant>): void {
    const former = this.#projects.get(projectId);
    for (const entry of former?.values() ?? []) {
      const next = wanted.get(entry.id);
      if (next?.schedule !== entry.schedule) this.#remove(entry);
    }
    for (const [id, { due, schedule }] of wanted) {
      const known = this.#entry(id);
      if (known === undefined) this.#add({ id, schedule, due, rangAt: null });
      else if (known.rangAt !== null) this.#await(known, due);
    }
    this.#dropStale();
  }

  /** Removes the project's entries for which this holds. */
  drop(projectId: string, isGone: (id: string) => boolean): void {
    const entries = this.#projects.get(projectId);
    for (const entry of entries?.values() ?? []) if (isGone(entry.id)) this.#remove(entry);
    this.#dropStale();
  }

  /** The trigger's actor looks again then. One without an entry, or of another schedule by now, has nothing to wait for here. */
  arm(id: string, { due, schedule }: NextInstant): void {
    const entry = this.#entry(id);
    if (entry?.schedule === schedule) this.#await(entry, due);
  }

  /** The earliest entry whose time has come, which rings now; null where there is none. */
  take(now: number): Scheduled | null {
    for (let at = this.#heap.peekValue(); at !== undefined && at <= now; at = this.#heap.peekValue()) {
      const entry = this.#heap.pop();
      if (entry === undefined || entry.due !== at || entry.rangAt !== null) continue;
      entry.rangAt = now;
      this.#rung.add(entry);
      return entry;
    }
    return null;
  }

  /** Those that rang up to an instant and were not armed since; they ring again now. */
  takeAgain(until: number, now: number): readonly Scheduled[] {
    const found = [...this.#rung].filter(({ rangAt }) => rangAt !== null && rangAt <= until);
    for (const entry of found) entry.rangAt = now;
    return found;
  }

  #entry(id: string): Entry | undefined {
    return this.#projects.get(projectOf(id))?.get(id);
  }

  #add(entry: Entry): void {
    const projectId = projectOf(entry.id);
    const entries = this.#projects.get(projectId) ?? new Map<string, Entry>();
    this.#projects.set(projectId, entries.set(entry.id, entry));
    this.#size += 1;
    this.#await(entry, entry.due);
  }

  #remove(entry: Entry): void {
    const projectId = projectOf(entry.id);
    const entries = this.#projects.get(projectId);
    if (entries?.delete(entry.id) === true) this.#size -= 1;
    if (entries?.size === 0) this.#projects.delete(projectId);
    this.#rung.delete(entry);
    // What the heap still has of it is stale.
    entry.due = Number.NaN;
  }

  /** Stale ones keep definitions' texts alive until they come up: in a year, for some. Once they are the most the heap is made anew. */
  #dropStale(): void {
    if (this.#heap.length <= 2 * this.#size + STALE_MAX) return;
    this.#heap.clear();
    for (const entries of this.#projects.values())
      for (const entry of entries.values()) if (entry.rangAt === null) this.#await(entry, entry.due);
    this.#heap.shrink();
  }

  #await(entry: Entry, due: number): void {
    entry.due = due;
    entry.rangAt = null;
    this.#rung.delete(entry);
    this.#heap.push(entry, due);
  }
}
