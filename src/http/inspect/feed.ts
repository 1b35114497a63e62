/**
 * What people who inspect actors get, each over an own line.
 *
 *  F1 Without a reader, a step costs one entry of a map. No record is made, and the history is not read.
 *  F2 A reader gets the recent history, then the present state of each actor in memory, then each step as it is saved.
 *     An actor is announced before anything else of it.
 *  F3 Readers, the frames that wait for one of them, frames, and remembered actors have limits. A reader that falls behind is
 *     disconnected, and gets everything anew when it comes back.
 */
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import { BoundedMap } from "../../ground/bounded-map.ts";
import type { InspectedStep } from "../../actors/inspector.ts";
import type { ActorTransition } from "../../store/ports/transitions.ts";
import * as records from "./records.ts";

/** How many people can look at once. */
export const READERS_MAX = 8;
/** How many frames may wait for one reader, after its first ones. */
export const WAITING_MAX = 5_000;
/** How many actors in memory are known. The one that was unchanged longest makes room. */
export const ACTORS_MAX = 1_000;

/** A connection. `sent` is called later, when the frame has left this process. */
export interface Line {
  readonly send: (frame: string, onSent: () => void) => void;
  readonly end: () => void;
}

class Reader {
  readonly #line: Line;
  /** Actors that this reader knows. */
  readonly #known: Set<string>;
  /** The history and the present, made as they are sent. */
  #opening: Iterator<string> | null;
  readonly #waiting: string[] = [];
  #isSending = false;

  constructor(line: Line, ids: Set<string>, opening: Iterator<string>) {
    this.#line = line;
    this.#known = ids;
    this.#opening = opening;
    this.#pump();
  }

  /** The frames of a step. An actor that the reader does not know is announced first. */
  show(step: InspectedStep, frames: readonly string[], announcement: () => string): void {
    const id = records.inspectionId(step);
    if (!this.#known.has(id) && step.left) return;
    if (!this.#known.has(id) && step.event !== null) this.#waiting.push(announcement());
    if (step.left) this.#known.delete(id);
    else this.#known.add(id);
    this.#waiting.push(...frames);
    if (this.#waiting.length > WAITING_MAX) this.#line.end();
    else this.#pump();
  }

  #pump(): void {
    if (this.#isSending) return;
    const frame = this.#next();
    if (frame === undefined) return;
    this.#isSending = true;
    this.#line.send(frame, () => {
      this.#isSending = false;
      this.#pump();
    });
  }

  #next(): string | undefined {
    const next = this.#opening?.next();
    if (next?.done === false) return next.value;
    this.#opening = null;
    return this.#waiting.shift();
  }
}

const pastIds = (past: readonly ActorTransition[]): Set<string> =>
  new Set(past.map(records.pastInspectionId));

/** F2, up to the present. */
function* openingRecords(
  past: readonly ActorTransition[],
  live: ReadonlyMap<string, InspectedStep>,
  now: number,
): Generator<StatelyInspectionEvent> {
  const newest = new Map<string, ActorTransition>();
  for (const row of past) {
    const id = records.pastInspectionId(row);
    if (!newest.has(id)) yield records.pastAnnouncement(row);
    newest.set(id, row);
    yield* records.pastRecords(row);
  }
  for (const [id, row] of newest) {
    const step = live.get(id);
    yield step === undefined ? records.pastEnd(row, now) : records.presentAnnouncement(step, now);
  }
  for (const [id, step] of live) if (!newest.has(id)) yield records.firstAnnouncement(step, now);
}

function* encodeFrames(events: Iterable<StatelyInspectionEvent>): Generator<string> {
  for (const record of events) yield records.encodeFrame(record);
}

export class Feed {
  /** The last step of each actor in memory, as the host gave it. */
  readonly #live = new BoundedMap<string, InspectedStep>(ACTORS_MAX);
  readonly #readers = new Map<Line, Reader | null>();

  /** Whether steps have to be shown to anybody. */
  get isWatched(): boolean {
    return this.#readers.size > 0;
  }

  get isFull(): boolean {
    return this.#readers.size >= READERS_MAX;
  }

  /** Keeps a step for later readers. */
  keep(step: InspectedStep): void {
    const id = records.inspectionId(step);
    if (step.left) this.#live.delete(id);
    else this.#live.set(id, step);
  }

  /** Shows a step that was kept to everybody who looks. */
  show(step: InspectedStep, now: number): void {
    const frames = records.stepRecords(step, now).map(records.encodeFrame);
    const announcement = () => records.encodeFrame(records.firstAnnouncement(step, now));
    for (const reader of this.#readers.values()) reader?.show(step, frames, announcement);
  }

  /** A reader came. It gets nothing before its history was read (`begin`), so no step is shown twice or too early. */
  open(line: Line): void {
    this.#readers.set(line, null);
  }

  begin(line: Line, past: readonly ActorTransition[], now: number): void {
    if (!this.#readers.has(line)) return;
    const live = new Map(this.#live);
    const ids = new Set([...live.keys(), ...pastIds(past)]);
    this.#readers.set(line, new Reader(line, ids, encodeFrames(openingRecords(past, live, now))));
  }

  close(line: Line): void {
    this.#readers.delete(line);
  }
}
