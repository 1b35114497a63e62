/**
 * The conversation as the daemon reports it (`GET /platform/conversation`): the present version of each item, for
 * readers that follow it.
 *
 *  F1 One counter, `rev`, numbers all versions of all items, and all changes of the turn, over the daemon's life. A
 *     version without a change gets no number.
 *  F2 A reader gets every item whose version is newer than its own last one, in the order of the numbers. If it is slow,
 *     it gets the newest version only. It may lose deltas, and never items.
 *  F3 A closed item keeps its status.
 *  F4 Nothing leaves the feed before it is redacted.
 *  F5 Growing text or output is reported as an item when the item closes, every `REPORT_EVERY_MS`, and every
 *     `REPORT_EVERY_LENGTH`. Text is reported as a delta in between.
 *  F6 The feed holds `FEED_BYTES_MAX` of items: beyond that, the oldest closed ones lose their output, then go.
 *  F7 Each item has a place in the order in which the agent made the items (`order`): the one that the adapter names, else
 *     the last one. It keeps the place, because a slow reader gets its versions later than items that follow it. An item
 *     of another author comes after all known ones: its time may be from another clock than the agent's.
 *  F8 If the daemon ends a turn, no record of the runtime says why. A note does.
 */
import { isDeepStrictEqual } from "node:util";
import { BoundedMap } from "../../src/ground/bounded-map.ts";
import type {
  ItemError,
  NativeItem,
  TextDelta,
  TurnNow,
} from "../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../src/domain/conversation/growing.ts";
import type { ConversationObserver, ItemDraft } from "../adapters/adapter.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import { cleanItem, cleanLabel } from "./clean-item.ts";
import { FeedReader } from "./feed-reader.ts";
import { GrowingText } from "./growing-text.ts";
import { noteItem } from "./note.ts";

/** All items, in bytes of JSON. */
export const FEED_BYTES_MAX = 32 * 1024 * 1024;
/** Outputs that are longer than their item shows, in bytes. The oldest go first. */
export const OUTPUTS_BYTES_MAX = 16 * 1024 * 1024;
/** F5, in UTF-16 code units. */
export const REPORT_EVERY_LENGTH = 16 * 1024;
export const REPORT_EVERY_MS = 2000;

interface Kept {
  /** The version that readers get. */
  reported: NativeItem;
  /** Its size. */
  bytes: number;
  /** The newest version, which differs from the reported one by growth only. */
  current: ItemDraft;
  growing: GrowingText | null;
  reportedMs: number;
}

/** A timer. @returns a function that cancels it */
export type After = (ms: number, run: () => void) => () => void;

export interface FeedOptions {
  readonly redactor: Redactor;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly after: After;
}

export class ConversationFeed implements ConversationObserver {
  readonly #options: FeedOptions;
  readonly #items = new Map<string, Kept>();
  /** The versions in order. One whose item has a newer version is skipped. */
  #log: { readonly rev: number; readonly id: string }[] = [];
  readonly #outputs = new BoundedMap<string, string>(OUTPUTS_BYTES_MAX, (text) => Buffer.byteLength(text));
  #bytes = 0;
  #rev = 0;
  /** The highest place (F7). */
  #order = 0;
  #turn: TurnNow = { state: "idle", waiting_for: null };
  #turnsEnded = 0;
  #turnRev = 0;
  #title: string | null = null;
  readonly #readers = new Set<FeedReader>();
  /** Items with growth that is not reported yet. */
  readonly #grown = new Set<string>();
  #cancel: (() => void) | null = null;
  /** The turn of the newest item. */
  #turnId: string | null = null;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** The number of the newest version. */
  get rev(): number {
    return this.#rev;
  }

  /** ms since the epoch. */
  now(): number {
    return this.#options.now();
  }

  get turnNow(): TurnNow {
    return this.#title === null ? this.#turn : { ...this.#turn, title: this.#title };
  }

  /** How many turns have ended. */
  get turnsEnded(): number {
    return this.#turnsEnded;
  }

  /** The number of the turn's last change. */
  get turnRev(): number {
    return this.#turnRev;
  }

  get readers(): number {
    return this.#readers.size;
  }

  readonly item = (draft: ItemDraft): void => {
    const { redactor } = this.#options;
    const former = this.#items.get(draft.native_id);
    this.#turnId = draft.turn_id ?? this.#turnId;
    const order = former?.reported.order ?? this.#orderOf(draft);
    this.#order = Math.max(this.#order, order);
    const orderedItem = { ...(former === undefined ? draft : keepingStatus(former.reported, draft)), order };
    const last = orderedItem.content.at(-1);
    const grows = orderedItem.status === "running" && last?.type === "text";
    const growing = grows ? new GrowingText(redactor, last.text) : null;
    const { item, output } = cleanItem(orderedItem, redactor);
    const clean = growing === null ? item : withText(item, growing.text);
    if (output !== null) this.#outputs.set(draft.native_id, output);
    if (former === undefined) return this.#report(clean, growing);
    if (isDeepStrictEqual(clean, former.current)) {
      former.growing = growing;
      return;
    }
    const growth = itemGrowth(former.current, clean);
    if (growth === null) return this.#report(clean, growing);
    former.growing = growing;
    this.#grow(former, clean, growth);
  };

  readonly grown = ({ native_id: id, offset, text }: TextDelta): void => {
    const entry = this.#items.get(id);
    if (entry === undefined || entry.growing === null || entry.growing.taken !== offset) return;
    const addition = entry.growing.append(text);
    if (addition !== "") this.#grow(entry, withText(entry.current, entry.growing.text), addition);
  };

  /** The turn's state, and how many turns have ended. One report contains both. */
  readonly turn = (now: TurnNow, endedTurns: number = this.#turnsEnded): void => {
    if (isDeepStrictEqual(now, this.#turn) && endedTurns === this.#turnsEnded) return;
    this.#turn = now;
    this.#turnsEnded = endedTurns;
    this.#reportTurn();
  };

  /** The runtime's own title. It is reported with the turn. */
  readonly titled = (title: string): void => {
    const clean = cleanLabel(title, this.#options.redactor);
    if (clean === this.#title) return;
    this.#title = clean;
    this.#reportTurn();
  };

  #reportTurn(): void {
    this.#rev += 1;
    this.#turnRev = this.#rev;
    for (const reader of this.#readers) reader.turned();
  }

  /** F8. @param error why the daemon has ended the turn */
  turnEnded(error: ItemError): void {
    this.noteOfTurn("ended", "The turn has ended.", { status: "failed", error });
  }

  /** A note in the turn of the newest item. @param about differs between the notes of a sandbox at one instant */
  noteOfTurn(about: string, text: string, more: Partial<Pick<ItemDraft, "status" | "error">> = {}): void {
    this.item({ ...noteItem(about, text, this.#options.now()), turn_id: this.#turnId, ...more });
  }

  /** Ends every open item, because the runtime has ended. */
  runtimeEnded(): void {
    for (const { current, growing } of this.#items.values()) {
      if (isClosed(current.status)) continue;
      const whole = growing === null ? current : withText(current, growing.breakOff());
      this.#report({ ...whole, status: "interrupted", completed_at: this.#options.now() }, null);
    }
  }

  /** When the oldest command that still runs began, ms since the epoch. Null if none runs. */
  get commandSince(): number | null {
    const starts = [...this.#items.values()].flatMap(({ current: { status, tool, created_at: at } }) =>
      tool?.kind === "execute" && !isClosed(status) ? [at] : [],
    );
    return starts.length === 0 ? null : Math.min(...starts);
  }

  /** The whole kept output of a tool. Null if there is no such item. */
  output(id: string): string | null {
    return this.#outputs.get(id) ?? this.#items.get(id)?.reported.tool?.output ?? null;
  }

  /**
   * Adds a reader that has every version up to that number. One from another daemon's life starts anew.
   *
   * @param wake called when there is something to read
   */
  attach(after: number, wake: () => void): FeedReader {
    this.#reportGrown(() => true);
    const reader = new FeedReader(this, { after: after > this.#rev ? 0 : after, wake });
    this.#readers.add(reader);
    return reader;
  }

  detach(reader: FeedReader): void {
    this.#readers.delete(reader);
  }

  /** The versions after that number, oldest first. */
  *versionsAfter(rev: number): Generator<NativeItem> {
    for (let at = this.#indexAfter(rev); at < this.#log.length; at += 1) {
      const entry = this.#log[at];
      const item = entry === undefined ? undefined : this.#items.get(entry.id)?.reported;
      if (item !== undefined && item.rev === entry?.rev) yield item;
    }
  }

  #orderOf({ role, order }: ItemDraft): number {
    const last = this.#order + 1;
    return order !== undefined && role === "agent" ? order : Math.max(order ?? 0, last);
  }

  #grow(entry: Kept, current: ItemDraft, text: string): void {
    const offset = lastText(entry.current).length;
    entry.current = current;
    const { native_id: id } = current;
    if (entry.growing !== null)
      for (const reader of this.#readers) reader.grew({ native_id: id, offset, text });
    this.#grown.add(id);
    this.#reportGrown((item) => this.#isDue(item));
  }

  #isDue({ current, reported, reportedMs }: Kept): boolean {
    const more = Math.abs(itemLength(current) - itemLength(reported));
    return more >= REPORT_EVERY_LENGTH || this.#options.now() - reportedMs >= REPORT_EVERY_MS;
  }

  #reportGrown(which: (entry: Kept) => boolean): void {
    for (const id of this.#grown) {
      const entry = this.#items.get(id);
      if (entry === undefined) this.#grown.delete(id);
      else if (which(entry)) this.#report(entry.current, entry.growing);
    }
    if (this.#grown.size === 0 || this.#cancel !== null) return;
    this.#cancel = this.#options.after(REPORT_EVERY_MS, () => {
      this.#cancel = null;
      this.#reportGrown(() => true);
    });
  }

  #report(draft: ItemDraft, growing: GrowingText | null): void {
    const { native_id: id } = draft;
    this.#rev += 1;
    const report = { ...draft, rev: this.#rev };
    const bytes = Buffer.byteLength(JSON.stringify(report));
    this.#bytes += bytes - (this.#items.get(id)?.bytes ?? 0);
    this.#items.set(id, {
      reported: report,
      bytes,
      current: draft,
      growing,
      reportedMs: this.#options.now(),
    });
    this.#grown.delete(id);
    this.#log.push({ rev: this.#rev, id });
    this.#compact();
    if (this.#bytes > FEED_BYTES_MAX) this.#shrink();
    for (const reader of this.#readers) reader.reported(id);
  }

  /** Drops the log's outdated entries when they are the larger part of it. */
  #compact(): void {
    if (this.#log.length < 2 * this.#items.size + 64) return;
    this.#log = this.#log.filter(({ rev, id }) => this.#items.get(id)?.reported.rev === rev);
  }

  /** F6. A version that loses its output keeps its number: who has read it whole keeps it whole. */
  #shrink(): void {
    // To less than the limit, so that it is not reached again at once.
    const target = (FEED_BYTES_MAX / 8) * 7;
    const closedItems = [...this.versionsAfter(0)].filter(({ status }) => isClosed(status));
    for (const { native_id: id, tool } of closedItems) {
      if (this.#bytes <= target) return;
      const entry = this.#items.get(id);
      if (entry === undefined || tool === null || (tool.output === "" && tool.changes.length === 0)) continue;
      const without = { ...tool, output: "", truncated: true, changes: [] };
      entry.reported = { ...entry.reported, tool: without };
      entry.current = { ...entry.current, tool: without };
      const bytes = Buffer.byteLength(JSON.stringify(entry.reported));
      this.#bytes += bytes - entry.bytes;
      entry.bytes = bytes;
    }
    for (const { native_id: id } of closedItems) {
      if (this.#bytes <= target) return;
      this.#bytes -= this.#items.get(id)?.bytes ?? 0;
      this.#items.delete(id);
    }
  }

  /** The index of the log's first entry after a number. */
  #indexAfter(rev: number): number {
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#log[middle]?.rev ?? Infinity) <= rev) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** F3. The rest of a closed item may still change, e.g. get its usage. */
const keepingStatus = (former: NativeItem, draft: ItemDraft): ItemDraft =>
  isClosed(former.status) && draft.status !== former.status
    ? { ...draft, status: former.status, error: former.error, completed_at: former.completed_at }
    : draft;

const withText = (item: ItemDraft, text: string): ItemDraft => ({
  ...item,
  content: [...item.content.slice(0, -1), { type: "text", text }],
});

const lastText = ({ content }: ItemDraft): string => {
  const last = content.at(-1);
  return last?.type === "text" ? last.text : "";
};

const itemLength = (item: ItemDraft): number => lastText(item).length + (item.tool?.output.length ?? 0);

const withoutGrowth = (item: ItemDraft): ItemDraft => ({
  ...item,
  content: lastText(item) === "" ? item.content : item.content.slice(0, -1),
  tool: item.tool === null ? null : { ...item.tool, output: "", truncated: false },
});

/** The text by which a running item grew. Null if something else has changed. */
const itemGrowth = (before: ItemDraft, after: ItemDraft): string | null => {
  const [former, latter] = [lastText(before), lastText(after)];
  if (after.status !== "running" || (former === "") !== (latter === "") || !latter.startsWith(former))
    return null;
  return isDeepStrictEqual(withoutGrowth(before), withoutGrowth(after)) ? latter.slice(former.length) : null;
};
