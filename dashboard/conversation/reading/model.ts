/**
 * A conversation as far as the page has read it. It uses neither the document nor the network.
 *
 *  M1 A version of an item with a lower `seq` than the known one changes nothing. Versions may arrive twice, and late.
 *  M2 A delta that does not begin where the text ends changes nothing. The next version of the item has the whole text.
 *  M3 `order` is a gapless end of the conversation from `floor` on, in the order of `place`. An older item comes with its
 *     page. Messages that wait and open requests are kept wherever they are.
 *  M4 Only the snapshot and the stream move `seq`. An item that another answer brings is known earlier, and what the
 *     stream sends before it is still missing.
 *  M5 An event has the beginning of a long text. The page reads the whole of it once when it begins to be long, and once
 *     when it has ended. In between, deltas continue it.
 */
import { appendText, isOpen, contentText } from "../../../src/domain/conversation/growing.ts";
import { now } from "../../elements/format.ts";
import type { Conversation as Page, Item, TextDelta, Turn, Usage } from "../../wire.d.ts";

export { isOpen, contentText as textOf };
export type { Item };
type ConversationPage = Omit<Page, "state"> & { state: Turn };

export interface Conversation {
  /** By id. */
  items: Map<string, Item>;
  /** By place. A changed item is a new object in both. */
  order: Item[];
  turn: Turn;
  usage: Usage;
  /** Whether the queue waits until somebody resumes it. */
  held: boolean;
  /** Everything up to this number was read. */
  seq: number;
  /** The number of the last version of turn, usage and held. */
  turnSeq: number;
  /** Cursor of the page before; null: this is the beginning. */
  older: string | null;
  /** The place where the oldest page begins. */
  floor: number;
  /** When the agent said or did something last, ms since the epoch. */
  heardMs: number;
}

const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
/** Whether the item is a message that the agent does not have yet. */
export const isWaiting = ({ status }: Item) => status === "queued" || status === "sending";

/** Whether the agent waits for an answer to it. */
const isAsking = (item: Item) => item.kind === "request" && isOpen(item);

/** Whether the tool call asks what a request of its turn asks, too. The request can be answered. @param asking turns */
const isAskedTwice = ({ kind, tool, status, turn_id: turn }: Item, asking: Set<string | null>) =>
  kind === "tool" && tool?.name === "question" && status !== "failed" && asking.has(turn);

/** Whether the message is the plan of its turn, which can be approved. @param plans by turn */
const isPlanned = (item: Item, plans: Map<string | null, string | undefined>) =>
  item.kind === "message" && item.role === "agent" && plans.get(item.turn_id) === contentText(item);

/** The items to show in the conversation. */
export const shownItems = ({ order, floor }: Conversation) => {
  const start = placeOf(order, floor);
  const asking = new Set(
    order.flatMap(({ request, turn_id }) => (request?.kind === "question" ? [turn_id] : [])),
  );
  const plans = new Map(
    order.flatMap(({ request, turn_id }) => (request?.plan ? [[turn_id, request.plan.text]] : [])),
  );
  // An old request is shown before the pages between are read, because the agent waits for it.
  return [
    ...order.slice(0, start).filter(isAsking),
    ...order
      .slice(start)
      .filter((item) => !isWaiting(item) && !isAskedTwice(item, asking) && !isPlanned(item, plans)),
  ];
};

/** @returns the requests that wait for an answer, oldest first */
export const openRequests = ({ order }: Conversation): Item[] => order.filter(isAsking);

/**
 * The tool calls that wait for a permission, by id. A request does not name its call: it is that of its command, otherwise
 * the newest one before it.
 */
export const callsThatWait = ({ order }: Conversation): ReadonlySet<string> =>
  new Set(
    order.filter(isAsking).flatMap(({ request, turn_id: turn, parent_id: parent, place }) => {
      if (request?.kind !== "permission") return [];
      const calls = order.filter(
        (item) =>
          item.tool !== null &&
          isOpen(item) &&
          item.turn_id === turn &&
          item.parent_id === parent &&
          item.place < place,
      );
      const own = calls.findLast(({ tool }) => Object(tool?.input).command === request.command);
      return (own ?? calls.at(-1))?.id ?? [];
    }),
  );

/** The question that a reader can answer in the composer: the only open request, and its only question. @returns the request's id */
export const plainQuestion = (conversation: Conversation): string | null => {
  const [item, ...others] = openRequests(conversation);
  const isPlain = item?.request?.kind === "question" && item.request.questions.length === 1;
  return isPlain && others.length === 0 ? item.id : null;
};

/** Whether the agent waits with a plan and with nothing else: a message does not wait for the turn's end. */
export const waitsWithPlan = (conversation: Conversation) => {
  const open = openRequests(conversation);
  return open.length > 0 && open.every(({ request }) => request?.kind === "plan");
};

/** @returns in one line */
export const requestTitle = ({ kind, title, questions }: NonNullable<Item["request"]>): string => {
  if (kind === "plan") return "The agent proposes a plan";
  return kind === "permission"
    ? `The agent asks for permission: ${title}`
    : `The agent asks: ${title || (questions[0]?.text ?? "")}`;
};

/** How many tools of the known conversation have ended. */
export const finishedTools = ({ order }: Conversation) =>
  order.filter((item) => item.kind === "tool" && !isOpen(item)).length;

/** Whether the agent has said something since somebody wrote to it. */
export const hasSpoken = ({ order }: Conversation): boolean =>
  order.findLast((item) => item.kind === "message" && !isWaiting(item) && contentText(item) !== "")?.role ===
  "agent";

/**
 * The messages that the agent does not have yet.
 *
 * @param isLive whether the session has a sandbox, or gets one
 * @returns next: those that it gets now, because it rests or begins with them; queue: those that wait
 */
export const waitingMessages = (
  { order, turn, held, older }: Conversation,
  isLive: boolean,
): { next: Item[]; queue: Item[] } => {
  const waiting = order.filter(isWaiting);
  const rests = turn.state === "idle" && !held;
  // Only the first message can have begun a turn in which nothing else is known. The runtime accepts it some seconds later.
  const begins = turn.state !== "idle" && older === null && waiting.length === order.length;
  const isFirstSent = isLive && (rests || begins);
  const next = waiting.filter((item, index) => item.status === "sending" || (isFirstSent && index === 0));
  return { next, queue: waiting.filter((item) => !next.includes(item)) };
};

/** Tokens and cost of the newest turn. @returns null without a turn, and if its beginning was not read */
export const turnUsage = ({ order, older, floor }: Conversation): Usage | null => {
  const read = order.slice(placeOf(order, floor));
  const id = read.findLast((item) => typeof item.turn_id === "string")?.turn_id;
  if (id === undefined) return null;
  const first = read.findIndex((item) => item.turn_id === id);
  if (first === 0 && older !== null) return null;
  const spent = read.slice(first).flatMap((item) => (item.turn_id === id && item.usage ? [item.usage] : []));
  return spent.length === 0 ? null : spent.reduce(addUsage);
};

export const addUsage = (a: Usage, b: Usage): Usage => ({
  input_tokens: a.input_tokens + b.input_tokens,
  output_tokens: a.output_tokens + b.output_tokens,
  cached_tokens: a.cached_tokens + b.cached_tokens,
  cost_usd: a.cost_usd + b.cost_usd,
});

/** Since when the turn waits for its model, which says nothing. A tool that runs is waited for instead. @returns ms since the epoch */
export const silentSince = ({ order, turn, heardMs }: Conversation): number | null => {
  if (turn.state !== "running" || turn.since === null) return null;
  if (order.some((item) => item.kind === "tool" && isOpen(item))) return null;
  return Math.max(heardMs, Date.parse(turn.since));
};

export const emptyConversation = (): Conversation => ({
  items: new Map(),
  order: [],
  turn: { state: "idle", since: null, waiting_for: null },
  usage: NO_USAGE,
  held: false,
  seq: 0,
  turnSeq: 0,
  older: null,
  floor: -Infinity,
  heardMs: -Infinity,
});

/** Begins again with the newest page. */
export const applySnapshot = (conversation: Conversation, page: ConversationPage) => {
  Object.assign(conversation, emptyConversation(), {
    turn: page.state,
    usage: page.usage,
    held: page.queue_held,
    seq: page.seq,
    turnSeq: page.seq,
  });
  applyOlder(conversation, page);
  for (const item of [...page.queue, ...page.requests]) put(conversation, item);
  // When text came that is still growing is not told.
  conversation.heardMs = Math.max(
    ...page.items.map((item) =>
      item.role !== "agent"
        ? -Infinity
        : isOpen(item)
          ? now()
          : Date.parse(item.completed_at ?? item.created_at),
    ),
  );
};

/** Adds the page before. */
export const applyOlder = (conversation: Conversation, page: ConversationPage) => {
  conversation.older = page.next_cursor;
  conversation.floor =
    page.next_cursor === null ? -Infinity : (page.items.at(-1)?.place ?? conversation.floor);
  for (const item of page.items.toReversed()) put(conversation, item);
};

/** A new version of an item. */
export const applyItem = (conversation: Conversation, item: Item) => {
  conversation.seq = Math.max(conversation.seq, item.seq);
  if (item.role === "agent") conversation.heardMs = now();
  const known = conversation.items.get(item.id);
  // The page keeps the longer text that it has (M5).
  const isBeginning =
    item.truncated && known !== undefined && contentText(known).startsWith(contentText(item));
  put(conversation, isBeginning ? { ...item, content: known.content } : item);
};

/** Whether the rest of the item's text must be read (M5). @param item of an event */
export const lacksText = ({ items }: Conversation, item: Item) => {
  const known = items.get(item.id);
  if (!item.truncated || item.tool !== null || known === undefined) return false;
  return !isOpen(item) || contentText(known).length <= contentText(item).length;
};

/** The whole text of an item whose event had its beginning. */
export const applyText = (conversation: Conversation, id: string, text: string) => {
  const item = conversation.items.get(id);
  const index = item?.content.findLastIndex((part) => part.type === "text") ?? -1;
  if (item === undefined || index < 0 || !text.startsWith(contentText(item))) return;
  const content = item.content.with(index, { type: "text", text });
  replace(conversation, item, { ...item, content, truncated: false });
};

/** An item that another answer than the stream brings (M4). */
export const applyEarly = (conversation: Conversation, item: Item) => put(conversation, item);

/** @param changed the service's event `state` */
export const applyState = (
  conversation: Conversation,
  { state: turn, usage, queue_held: held }: { state: Turn; usage: Usage; queue_held: boolean },
  seq: number,
) => {
  if (seq < conversation.turnSeq) return;
  Object.assign(conversation, { turn, usage, held, turnSeq: seq, seq: Math.max(conversation.seq, seq) });
};

export const applyDelta = (conversation: Conversation, { item_id: id, offset, text }: TextDelta) => {
  const item = conversation.items.get(id);
  if (item === undefined || !isOpen(item)) return;
  conversation.heardMs = now();
  const content = appendText(item.content, { offset, text });
  if (content !== null) replace(conversation, item, { ...item, content });
};

const drop = ({ items, order }: Conversation, item: Item) => {
  items.delete(item.id);
  order.splice(placeOf(order, item.place), 1);
};

/** @returns the index of the first one at or after this place */
export const placeOf = (order: readonly { place: number }[], place: number): number => {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((order[middle]?.place ?? Infinity) < place) low = middle + 1;
    else high = middle;
  }
  return low;
};

const put = (conversation: Conversation, item: Item) => {
  const known = conversation.items.get(item.id);
  if (known !== undefined && known.seq >= item.seq) return;
  if (item.place < conversation.floor && !isWaiting(item) && !isAsking(item)) {
    if (known !== undefined) drop(conversation, known);
    return;
  }
  replace(conversation, known, item);
};

const replace = ({ items, order }: Conversation, known: Item | undefined, item: Item) => {
  items.set(item.id, item);
  const index = placeOf(order, item.place);
  if (known?.place === item.place) {
    order[index] = item;
    return;
  }
  order.splice(index, 0, item);
  // An accepted message moves to the end.
  if (known !== undefined) order.splice(order.indexOf(known), 1);
};
