/**
 * The next look times of this node's cron triggers: one entry a trigger, in one heap (spec 6 "Cron fires"). Plain data,
 * without a clock. `npm run bench:scheduler` measures it.
 *
 *  E1 A trigger has an entry on the node where its actor lives, and on no other. The scheduler sees to that (`keep`,
 *     `drop`).
 *  E2 The first look time comes from the store's cursor. After that, the trigger's actor sets each next one (`arm`).
 *  E3 An entry that rang stays until it is armed again: a lost message costs time, never an instant.
 */
import FlatQueue from "flatqueue";
import * as Result from "effect/Result";
import { nextInstant, parseCron } from "../domain/trigger/cron.ts";
import type { CronTriggerDefinition } from "../domain/trigger/trigger.ts";
import type { NextInstant } from "../machines/trigger.ts";

/** How many stale entries the heap may hold beyond one for each trigger. */
const STALE_MAX = 1024;

/** The address of a trigger's actor. */
export const triggerActorId = (projectId: string, slug: string): string => `${projectId}/${slug}`;

/** The project of a trigger's actor. */
export const triggerProject = (id: string): string => id.slice(0, id.indexOf("/"));

/** The slug of a trigger's actor. */
const triggerSlug = (id: string): string => id.slice(id.indexOf("/") + 1);

/** Expression and zone in one text. It identifies a schedule: a trigger whose text changes starts counting again. */
export const scheduleText = ({ cron, timezone }: CronTriggerDefinition): string => `${cron} ${timezone}`;

/** The first due instant after another one, in ms. Null if the schedule has no further instant. */
export const nextDue = ({ cron, timezone }: CronTriggerDefinition, afterMs: number): number | null =>
  nextInstant(Result.getOrThrow(parseCron(cron)), timezone, afterMs);

/** A trigger that waits for its next look. */
export interface Scheduled {
  readonly id: string;
  readonly schedule: string;
  /** The next look, in ms since the epoch. */
  readonly due: number;
  /** When the actor was told to look, in ms since the epoch. Null until the instant comes. */
  readonly rangAt: number | null;
}

/** The first look of a trigger. */
export interface FirstLook extends NextInstant {
  /** The cursor from which it was counted, in ms since the epoch. */
  readonly from: number;
}

/** A node may hold a million of these. So an entry has its slug, and not the whole id, which begins with the project's. */
class Entry implements Scheduled {
  readonly project: ProjectEntries;
  readonly slug: string;
  readonly schedule: string;
  /** The cursor that was read last. */
  from: number;
  due: number;
  rangAt: number | null = null;

  constructor(project: ProjectEntries, slug: string, { schedule, from, due }: FirstLook) {
    this.project = project;
    this.slug = ownText(slug);
    this.schedule = ownText(schedule);
    this.from = from;
    this.due = due;
  }

  get id(): string {
    return triggerActorId(this.project.id, this.slug);
  }
}

interface ProjectEntries {
  readonly id: string;
  readonly bySlug: Map<string, Entry>;
}

/** The same text without the longer texts that V8 made it from and keeps. Slugs and schedules may be joined or cut out. */
const ownText = (text: string): string => Buffer.from(text).toString();

export class Schedules {
  readonly #projects = new Map<string, ProjectEntries>();
  /**
   * Waiting entries, by `due`. A heap item whose instant differs from its entry's is stale and is dropped when it comes
   * up.
   */
  readonly #heap = new FlatQueue<Entry>();
  /** Entries that rang, the earliest first. */
  readonly #rung = new Set<Entry>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The earliest instant at which something may be due. */
  get first(): number {
    return this.#heap.peekValue() ?? Infinity;
  }

  get(id: string): Scheduled | null {
    return this.#entry(id) ?? null;
  }

  /**
   * Replaces the project's entries by these. An entry with the same schedule stays as it was, unless it rang: its actor
   * may have looked by another definition, so the entry is set again. It is set again also if its cursor went
   * back: the schedule was another one meanwhile, and the former cursor came from a node whose clock is ahead.
   */
  keep(projectId: string, counts: ReadonlyMap<string, FirstLook>): void {
    const former = this.#projects.get(projectId);
    for (const entry of former?.bySlug.values() ?? []) {
      const next = counts.get(entry.id);
      if (next?.schedule !== entry.schedule) this.#remove(entry);
    }
    for (const [id, counted] of counts) {
      const entry = this.#entry(id);
      const { due, from } = counted;
      if (entry === undefined) this.#add(id, counted);
      else {
        if (entry.rangAt !== null || from < entry.from) this.#await(entry, due);
        entry.from = from;
      }
    }
    this.#dropStale();
  }

  /** Removes the project's entries that match. */
  drop(projectId: string, isGone: (id: string) => boolean): void {
    const project = this.#projects.get(projectId);
    for (const entry of project?.bySlug.values() ?? []) if (isGone(entry.id)) this.#remove(entry);
    this.#dropStale();
  }

  /** Sets the trigger's next look. A trigger without an entry, or with another schedule by now, is ignored. */
  arm(id: string, { due, schedule }: NextInstant): void {
    const entry = this.#entry(id);
    if (entry?.schedule === schedule) this.#await(entry, due);
  }

  /** The earliest entry whose time has come; it rings now. Null if no entry is due. */
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

  /** The entries that are due up to an instant, the earliest first, and at most so many. They stay. */
  soon(until: number, atMost: number): readonly Scheduled[] {
    const entries: Entry[] = [];
    while (entries.length < atMost && this.first <= until) {
      const due = this.first;
      const entry = this.#heap.pop();
      if (entry !== undefined && entry.due === due && entry.rangAt === null) entries.push(entry);
    }
    for (const entry of entries) this.#heap.push(entry, entry.due);
    return entries;
  }

  /** Entries that rang up to an instant and were not armed since. They ring again now. */
  takeAgain(until: number, now: number): readonly Scheduled[] {
    const lateEntries = [...this.#rung].filter(({ rangAt }) => rangAt !== null && rangAt <= until);
    for (const entry of lateEntries) entry.rangAt = now;
    return lateEntries;
  }

  #entry(id: string): Entry | undefined {
    return this.#projects.get(triggerProject(id))?.bySlug.get(triggerSlug(id));
  }

  #add(id: string, count: FirstLook): void {
    const projectId = triggerProject(id);
    const project = this.#projects.get(projectId) ?? { id: projectId, bySlug: new Map<string, Entry>() };
    const entry = new Entry(project, triggerSlug(id), count);
    this.#projects.set(projectId, project);
    project.bySlug.set(entry.slug, entry);
    this.#size += 1;
    this.#await(entry, entry.due);
  }

  #remove(entry: Entry): void {
    const { id, bySlug } = entry.project;
    if (bySlug.delete(entry.slug)) this.#size -= 1;
    if (bySlug.size === 0) this.#projects.delete(id);
    this.#rung.delete(entry);
    // Its items in the heap are now stale.
    entry.due = Number.NaN;
  }

  /**
   * Stale items keep definitions' texts in memory until they come up, which may take a year. The heap is rebuilt once
   * stale items outnumber live ones.
   */
  #dropStale(): void {
    if (this.#heap.length <= 2 * this.#size + STALE_MAX) return;
    this.#heap.clear();
    for (const { bySlug } of this.#projects.values())
      for (const entry of bySlug.values()) if (entry.rangAt === null) this.#await(entry, entry.due);
    this.#heap.shrink();
  }

  #await(entry: Entry, due: number): void {
    entry.due = due;
    entry.rangAt = null;
    this.#rung.delete(entry);
    this.#heap.push(entry, due);
  }
}
