/**
 * The part of a conversation that is in the document, and where the reader is in it.
 *
 *  L1 At most `WINDOW` entries are in the document. Scrolling moves this window, and reads older pages at its beginning.
 *  L2 A reader at the end stays there while the conversation grows. For all others, the first entry in view stays where it is.
 *  L3 What a reader opened and typed outlasts the elements.
 */
import { openRequests, placeOf, shownItems } from "./reading/model.ts";
import type { Reading } from "./reading/stream.ts";
import type { Item } from "../wire.d.ts";
import type { Foot } from "./foot/foot.ts";
import type { Opened } from "./parts.tsx";
import type { Draft } from "./items/reply.ts";
import { entriesOf, type Entry } from "./turns.ts";

const WINDOW = 120;
const STEP = 60;
/** This near to an end, in pixels, counts as at it; the window moves a bit before. */
const AT_END = 32;
const NEAR_END = 240;
/** This much of a request, in pixels, is enough to see that there is one. */
const SEEN = 72;
/** Above a request that the reader goes to, in pixels. */
const MARGIN = 12;

/** What stands above the oldest entry. */
export type Edge = "loading" | "older" | "beginning" | "nothing" | null;

/** The drawn entries, and what they stand in. */
export interface View {
  readonly entries: readonly Entry[];
  readonly edge: Edge;
  readonly follows: boolean;
  /** How many items there are below the window. */
  readonly below: number;
  readonly problem: string | null;
  /** Open requests that are not in view, oldest first. */
  readonly hidden: readonly Item[];
  /** The id of an item that the reader looked for. */
  readonly marked: string | null;
}

interface Place {
  readonly id: string;
  readonly top: number;
}

export interface Context {
  /** The session in the API. */
  readonly path: string;
  readonly reading: Reading;
  readonly foot: Foot;
}

const itemsIn = (entries: readonly Entry[]): number =>
  entries.reduce((all, { items }) => all + items.length, 0);

const firstPlace = ({ items }: Entry): number => items[0]?.place ?? 0;

export class Log {
  readonly opened: Opened;
  /** What the reader chose and typed, by the request's id. */
  readonly drafts = new Map<string, Draft>();
  #view: View;
  readonly #listeners = new Set<() => void>();
  readonly #opened = new Set<string>();
  #element: HTMLElement | null = null;
  #all: readonly Entry[] = [];
  /** The place of the first item, while it does not follow. */
  #from = 0;
  /** The index of the first entry in the document. */
  #start = 0;
  /** The height of the log when it was last kept at its end, and the height of its content then. */
  #height = 0;
  #full = 0;
  /** Where the visible entries were before the drawing that is under way. */
  #anchors: readonly Place[] | null = null;
  /** A request, or another item, that the reader goes to once it is in the document. */
  #wanted: string | null = null;
  /** An item that the reader looks for, until it was read. */
  #sought: string | null = null;
  readonly context: Context;

  constructor(context: Context) {
    this.context = context;
    this.#view = {
      entries: [],
      edge: "loading",
      follows: true,
      below: 0,
      problem: null,
      hidden: [],
      marked: null,
    };
    this.opened = {
      has: (name) => this.#opened.has(name),
      set: (name, isOpened) => {
        if (isOpened) this.#opened.add(name);
        else this.#opened.delete(name);
        // The opened details stay where they are.
        this.#stopFollowing();
        this.draw();
      },
    };
    this.draw();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): View => this.#view;

  /** Called with the log's element once it is in the document. @returns what ends it */
  readonly attach = (element: HTMLElement): (() => void) => {
    this.#element = element;
    const scrolled = (): void => this.#scrolled();
    // A picture takes its room once it is loaded. The event does not bubble.
    const loaded = (): void => this.#stayAtEnd();
    // The log gets smaller while a reader types.
    const sizes = new ResizeObserver(() => {
      this.#stayAtEnd();
      this.#tellHidden();
    });
    element.addEventListener("scroll", scrolled);
    element.addEventListener("load", loaded, true);
    sizes.observe(element);
    return () => {
      this.#element = null;
      element.removeEventListener("scroll", scrolled);
      element.removeEventListener("load", loaded, true);
      sizes.disconnect();
    };
  };

  /** Shows what the conversation is now. */
  draw(): void {
    const { conversation, problem } = this.context.reading;
    const { follows } = this.#view;
    const isAtWork = conversation.turn.state !== "idle";
    this.#all = entriesOf(shownItems(conversation), { isAtWork, isCut: conversation.older !== null });
    this.#start = follows
      ? Math.max(0, this.#all.length - WINDOW)
      : placeOf(
          this.#all.map((entry) => ({ place: firstPlace(entry) })),
          this.#from,
        );
    const end = this.#start + WINDOW;
    this.#anchors ??= follows ? null : this.#visible().filter(({ id }) => !this.#hasMoved(id));
    this.#show({
      entries: this.#all.slice(this.#start, end),
      edge: this.#edge(),
      below: itemsIn(this.#all.slice(end)),
      problem,
    });
    this.#seek();
  }

  /** Called after each drawing. */
  readonly drawn = (): void => {
    const anchors = this.#anchors;
    this.#anchors = null;
    if (!this.#view.follows && anchors !== null) this.#keepAt(anchors);
    this.#stayAtEnd();
    this.#goToWanted();
    // An older page may have arrived while the reader waits at the upper end.
    this.#scrolled();
  };

  /** Called when something else than the conversation has grown in the log. */
  readonly grown = (): void => this.#stayAtEnd();

  readonly toEnd = (): void => {
    this.#show({ follows: true });
    this.draw();
  };

  /** Shows what is above the window. */
  readonly earlier = (): void => {
    this.#stopFollowing();
    if (this.#start === 0) this.context.reading.readOlder();
    else this.#move(Math.max(0, this.#start - STEP));
  };

  /** Scrolls to a request, and begins its answer, or to another item. */
  readonly showRequest = (id: string): void => {
    const index = this.#all.findIndex(({ items }) => items.some((item) => item.id === id));
    if (index === -1) return;
    this.#stopFollowing();
    this.#wanted = id;
    if (this.#find(id) === null) this.#move(Math.max(0, index - STEP));
    else this.draw();
  };

  /** Scrolls to an item and marks it. If it is older than what was read, older pages are read until it is found. */
  readonly showItem = (id: string): void => {
    this.#sought = id;
    this.#show({ marked: id });
    this.#seek();
  };

  #seek(): void {
    const { conversation, heard, reading, readOlder } = this.context.reading;
    const id = this.#sought;
    if (id === null || !heard || reading) return;
    const isKnown = this.#all.some(({ items }) => items.some((item) => item.id === id));
    if (isKnown || conversation.older === null) this.#sought = null;
    if (isKnown) this.showRequest(id);
    else if (conversation.older !== null) {
      this.#stopFollowing();
      readOlder();
    }
  }

  #show(change: Partial<View>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }

  #edge(): Edge {
    const { conversation, heard, reading } = this.context.reading;
    if (!heard || reading) return "loading";
    if (this.#start > 0 || conversation.older !== null) return "older";
    if (this.#all.length > 0) return "beginning";
    // A first message may wait for the sandbox.
    return conversation.order.length === 0 ? "nothing" : null;
  }

  #find(id: string): HTMLElement | null {
    return this.#element?.querySelector(`[data-item="${CSS.escape(id)}"]`) ?? null;
  }

  /** The items in view, from above. */
  #visible(): readonly Place[] {
    if (this.#element === null) return [];
    const edge = this.#element.getBoundingClientRect().top;
    return [...this.#element.querySelectorAll("[data-item]")].flatMap((item) => {
      const { top, bottom } = item.getBoundingClientRect();
      return bottom > edge ? [{ id: item.getAttribute("data-item") ?? "", top }] : [];
    });
  }

  /** Whether the item has another place than in the drawing before: it goes there without the reader. */
  #hasMoved(id: string): boolean {
    const former = this.#view.entries.flatMap(({ items }) => items).find((item) => item.id === id);
    return former?.place !== this.context.reading.conversation.items.get(id)?.place;
  }

  /** The first item that is still in the document stays where it was. */
  #keepAt(places: readonly Place[]): void {
    for (const { id, top } of places) {
      const element = this.#find(id);
      if (element === null || this.#element === null) continue;
      const moved = element.getBoundingClientRect().top - top;
      if (moved !== 0) this.#element.scrollTop += moved;
      return;
    }
  }

  #stayAtEnd(): void {
    if (this.#element === null) return;
    this.#height = this.#element.clientHeight;
    this.#full = this.#element.scrollHeight;
    if (this.#view.follows) this.#element.scrollTop = this.#full;
  }

  #stopFollowing(): void {
    if (!this.#view.follows) return;
    const first = this.#view.entries[0];
    this.#from = first === undefined ? Infinity : firstPlace(first);
    this.#show({ follows: false });
  }

  #scrolled(): void {
    const log = this.#element;
    // A page that is not laid out does not scroll. While a drawing is under way, it decides.
    if (log === null || log.clientHeight === 0 || this.#anchors !== null) return;
    // The page may have changed the log's height or its content. Then the position is still the former end. A reader who scrolls up
    // is above it.
    const end = this.#full - Math.max(this.#height, log.clientHeight);
    if (this.#view.follows && log.scrollTop >= end - AT_END) this.#stayAtEnd();
    const below = log.scrollHeight - log.scrollTop - log.clientHeight;
    const isComplete = this.#start + WINDOW >= this.#all.length;
    const follows = isComplete && below <= AT_END;
    if (follows !== this.#view.follows) {
      if (follows) this.#show({ follows });
      else this.#stopFollowing();
      this.draw();
    }
    this.#tellHidden();
    if (!this.#view.follows && log.scrollTop < NEAR_END) this.earlier();
    else if (!isComplete && below < NEAR_END)
      this.#move(Math.min(this.#start + STEP, Math.max(0, this.#all.length - WINDOW)));
  }

  /** A request that is in view needs no bar. */
  #tellHidden(): void {
    const open = openRequests(this.context.reading.conversation);
    const hidden = open.filter(({ id }) => !this.#isSeen(id));
    const { hidden: before } = this.#view;
    if (hidden.length !== before.length || hidden.some((item, at) => item !== before[at]))
      this.#show({ hidden });
  }

  #isSeen(id: string): boolean {
    const element = this.#find(id);
    if (element === null || this.#element === null) return false;
    const [view, card] = [this.#element.getBoundingClientRect(), element.getBoundingClientRect()];
    const visible = Math.min(view.bottom, card.bottom) - Math.max(view.top, card.top);
    return visible >= Math.min(SEEN, card.height);
  }

  /** @param start index of the window's first entry */
  #move(start: number): void {
    const first = this.#all[start];
    if (first !== undefined) this.#from = firstPlace(first);
    this.draw();
  }

  #goToWanted(): void {
    const element = this.#wanted === null ? null : this.#find(this.#wanted);
    if (element === null || this.#element === null) return;
    this.#wanted = null;
    this.#element.scrollTop +=
      element.getBoundingClientRect().top - this.#element.getBoundingClientRect().top - MARGIN;
    const first = element.querySelector("form button, form input, form textarea");
    if (first instanceof HTMLElement) first.focus({ preventScroll: true });
  }
}
