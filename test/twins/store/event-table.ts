/** The table of events in memory: see tables.ts. */

import { readNews, type News } from "../../../src/domain/service/news.ts";
import type { NewEvent, StoredEvent } from "../../../src/store/ports/events.ts";
import { Waiting } from "../../../src/store/waiting.ts";

/** The subject of readers of all projects. */
export const ANY_PROJECT = "";

/** Event rows in commit order, and the place up to which each project's rows were pruned. */
export class EventTable {
  rows: readonly (StoredEvent & { readonly place: number; readonly news: News | null })[] = [];
  readonly horizons = new Map<string, number>();
  readonly waiting = new Waiting();
  #last = 0;

  get end(): number {
    return this.#last;
  }

  append(events: readonly NewEvent[]): void {
    const added = events.map((event) => {
      this.#last += 1;
      return Object.assign({ place: this.#last, cursor: String(this.#last), news: readNews(event) }, event);
    });
    this.rows = [...this.rows, ...added];
    for (const { projectId } of events) this.waiting.wake(projectId);
    if (events.length > 0) this.waiting.wake(ANY_PROJECT);
  }
}
