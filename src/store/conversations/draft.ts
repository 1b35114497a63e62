/**
 * A write to a conversation, before it is stored: which versions it makes, and their numbers. Both adapters use it, so
 * that they cannot differ. The caller holds the conversation's lock and has read every row that the write concerns.
 */
import { isDeepStrictEqual } from "node:util";
import { NO_USAGE, contentText, type Usage } from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import { firstSentence, shortRequest } from "../../domain/conversation/row-texts.ts";
import { cutText } from "../../domain/text.ts";
import { addUsage, usageSince } from "../../domain/conversation/usage.ts";
import {
  CONVERSATION_KEPT_MAX,
  CONVERSATION_TRIM_TO,
  ITEM_KEPT_MAX,
  type ChangedConversation,
  type Conversation,
  type ConversationChange,
  type Item,
  type ServiceNote,
  type AddedUsage,
} from "../ports/sessions/conversations.ts";
import { UNKNOWN_MODEL } from "../ports/projects/project-usage.ts";

/** An item without its numbers, which the draft gives. */
export type ItemVersion = Omit<Item, "seq" | "place">;

/** What an item of the service lacks: only a runtime's items have it. */
export const OWN_ITEM = {
  parentId: null,
  tool: null,
  plan: [],
  request: null,
  answer: null,
  model: null,
  agent: null,
  usage: null,
  error: null,
  pruned: false,
  sentAt: null,
  nativeId: null,
  sandboxId: null,
  rev: 0,
  order: null,
} as const satisfies Partial<ItemVersion>;

/** The part of an item that has no column of its own. */
export const itemRecord = ({
  id: _id,
  seq: _seq,
  place: _place,
  kind: _kind,
  status: _status,
  nativeId: _nativeId,
  sandboxId: _sandboxId,
  rev: _rev,
  order: _order,
  ...record
}: Item) => record;

/** The size of an item's record, in bytes. */
export const itemBytes = (item: Item): number => Buffer.byteLength(JSON.stringify(itemRecord(item)));

/** A record without content has at most this many bytes. Removing the content of a smaller one makes no room. */
export const STRIPPED_MAX = 4096;
const ERROR_KEPT = 500;

/** An item without its content, and without a tool's input and output. */
const strip = <I extends ItemVersion>(item: I): I => ({
  ...item,
  content: [],
  tool: item.tool === null ? null : { ...item.tool, input: null, output: "", truncated: true, changes: [] },
  plan: [],
  request: null,
  error: item.error && {
    code: cutText(item.error.code, ERROR_KEPT),
    message: cutText(item.error.message, ERROR_KEPT),
  },
  pruned: true,
});

/** The items of a sandbox from a number on, as the agent made them. */
const inAgentOrder = (items: Iterable<Item>, sandboxId: string, from: number): readonly Item[] =>
  [...items]
    .filter((item) => item.sandboxId === sandboxId && item.order !== null && item.order >= from)
    .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0) || one.place - other.place);

/** The first sentence of a whole message of the agent itself, not of a subagent. */
const sentenceIn = ({ kind, role, status, parentId, content }: ItemVersion): string | null =>
  kind === "message" && role === "agent" && parentId === null && isClosed(status)
    ? firstSentence(contentText(content))
    : null;

const conversationState = ({ turn, usage, held }: Conversation) => ({ turn, usage, held });

export class ConversationDraft {
  readonly #before: Conversation;
  readonly #items = new Map<string, Item>();
  readonly #byNative = new Map<string, string>();
  readonly #written = new Set<string>();
  readonly #changes: ConversationChange[] = [];
  readonly #spent = new Map<string, Usage>();
  #after: Conversation;

  constructor(before: Conversation, items: readonly Item[] = []) {
    this.#before = before;
    this.#after = before;
    this.know(items);
  }

  get id(): string {
    return this.#before.id;
  }

  /** Adds rows that were read. A version that this draft has written counts for more. */
  know(items: readonly Item[]): void {
    for (const item of items) if (!this.#written.has(item.id)) this.#hold(item);
  }

  #hold(item: Item): void {
    this.#items.set(item.id, item);
    if (item.nativeId !== null) this.#byNative.set(item.nativeId, item.id);
  }

  get(id: string | null): Item | undefined {
    return id === null ? undefined : this.#items.get(id);
  }

  ofNative(nativeId: string | null): Item | undefined {
    return nativeId === null ? undefined : this.get(this.#byNative.get(nativeId) ?? null);
  }

  /** Adds a note of the service as the last item. */
  putNote({ id, text, author, at }: ServiceNote): void {
    this.put({
      ...OWN_ITEM,
      id,
      kind: "note",
      role: null,
      author,
      status: "completed",
      turnId: null,
      content: [{ type: "text", text }],
      createdAt: at,
      completedAt: at,
    });
  }

  /** Writes a version. A new item takes the last place, as one does that `moves`. */
  put(version: ItemVersion, moves = false): void {
    const former = this.#items.get(version.id);
    const seq = this.#after.seq + 1;
    const place = former === undefined || moves ? seq : former.place;
    const whole: Item = { ...version, seq, place };
    const item = itemBytes(whole) > ITEM_KEPT_MAX ? strip(whole) : whole;
    this.#hold(item);
    this.#written.add(item.id);
    this.#changes.push({ type: "item", seq, item });
    this.#after = { ...this.#after, seq, lastSentence: sentenceIn(item) ?? this.#after.lastSentence };
    this.#count(former, item);
    this.resize(itemBytes(item) - (former === undefined ? 0 : itemBytes(former)));
  }

  #count(former: Item | undefined, item: Item): void {
    const more = usageSince(former?.usage ?? null, item.usage);
    if (isDeepStrictEqual(more, NO_USAGE)) return;
    const model = item.model ?? UNKNOWN_MODEL;
    this.#spent.set(model, addUsage(this.#spent.get(model) ?? NO_USAGE, more));
    this.#after = { ...this.#after, usage: addUsage(this.#after.usage, more) };
  }

  /** What the written versions used more than the former ones, by model. */
  get spent(): readonly AddedUsage[] {
    return [...this.#spent].map(([model, usage]) => ({ model, usage }));
  }

  setTurn(turn: Conversation["turn"]): void {
    const request = this.get(turn.waitingFor)?.request ?? null;
    this.#after = { ...this.#after, turn, turnRequest: request && shortRequest(request) };
  }

  setHeld(isHeld: boolean): void {
    this.#after = { ...this.#after, held: isHeld };
  }

  setSandbox(sandbox: Conversation["sandbox"]): void {
    this.#after = { ...this.#after, sandbox };
  }

  /**
   * Moves items to the end, in their order in the agent's work, if they stand before one that comes before them there
   * (ports/sessions/conversations.ts N4). What the agent did not make stays behind the item behind which it stands.
   */
  arrange(sandboxId: string, from: number): void {
    const ids = inAgentOrder(this.#items.values(), sandboxId, from).map(({ id }) => id);
    const followers = this.#followers(new Set(ids));
    let last = 0;
    const move = (id: string): void => {
      const item = this.#items.get(id);
      if (item !== undefined && item.place < last) this.put(item, true);
      last = this.#items.get(id)?.place ?? last;
    };
    for (const id of ids) {
      move(id);
      for (const follower of followers.get(id) ?? []) move(follower);
    }
  }

  /** Notes of the service and waiting messages, by the item behind which they stand. */
  #followers(ids: ReadonlySet<string>): ReadonlyMap<string, readonly string[]> {
    const followers = new Map<string, string[]>();
    let before: string[] | null = null;
    for (const { id, sandboxId } of [...this.#items.values()].toSorted(
      (one, other) => one.place - other.place,
    )) {
      if (ids.has(id)) followers.set(id, (before = []));
      else if (sandboxId === null) before?.push(id);
    }
    return followers;
  }

  /** Adds the size of an output or an attachment that is kept or removed. */
  resize(bytes: number): void {
    this.#after = { ...this.#after, bytes: this.#after.bytes + bytes };
  }

  /** How many bytes must go. 0 while the conversation is not full. */
  get surplus(): number {
    const { bytes } = this.#after;
    return bytes > CONVERSATION_KEPT_MAX ? bytes - CONVERSATION_TRIM_TO : 0;
  }

  /** Marks a known item whose kept output of this size was removed. */
  pruneOutput(id: string, outputBytes: number): void {
    this.resize(-outputBytes);
    const item = this.#items.get(id);
    if (item !== undefined) this.put({ ...item, pruned: true });
  }

  /** Removes the content of a known item. */
  strip(id: string): void {
    const item = this.#items.get(id);
    if (item !== undefined) this.put(strip(item));
  }

  /** The write as it is stored and told. A change of turn, usage or `held` is its last version. */
  finish(): ChangedConversation & { readonly items: readonly Item[] } {
    const state = conversationState(this.#after);
    if (!isDeepStrictEqual(state, conversationState(this.#before))) {
      const seq = this.#after.seq + 1;
      this.#after = { ...this.#after, seq, turnSeq: seq };
      this.#changes.push({ type: "state", seq, ...state });
    }
    const items = [...this.#written].flatMap((id) => this.#items.get(id) ?? []);
    const { spent } = this;
    return {
      conversation: this.#after,
      changes: this.#changes,
      items,
      ...(spent.length > 0 && { spent }),
    };
  }
}
