/**
 * A conversation as far as the page has read it. It uses neither the document nor the network.
 *
 *  M1 A version of an item with a lower `seq` than the known one changes nothing. Versions may arrive twice, and late.
 *  M2 A delta that does not begin where the text ends changes nothing. The next version of the item has the whole text.
 *  M3 `order` is a gapless end of the conversation from `floor` on, in the order of `place`. An older item comes with its
 *     page. Messages that wait and open requests are kept wherever they are.
 */

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./wire.d.ts").Turn} Turn */
/** @typedef {import("./wire.d.ts").Usage} Usage */
/** @typedef {import("./wire.d.ts").ConversationPage} ConversationPage */
/** @typedef {import("./wire.d.ts").TextDelta} TextDelta */

/**
 * @typedef {object} Conversation
 * @property {Map<string, Item>} items by id
 * @property {Item[]} order by place. A changed item is a new object in both.
 * @property {Turn} turn
 * @property {Usage} usage
 * @property {number} seq everything up to this number was read
 * @property {number} turnSeq the number of the last version of turn and usage
 * @property {string | null} older cursor of the page before; null: this is the beginning
 * @property {number} floor the place where the oldest page begins
 */

/** @type {Usage} */
const NO_USAGE = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
const OPEN = new Set(["queued", "sending", "pending", "running"]);

/** Whether the item may still change. @param {Item} item */
export const isOpen = ({ status }) => OPEN.has(status);

/** Whether the item is shown below the conversation, where it waits, and not in it. @param {Item} item */
export const isWaiting = (item) =>
  item.status === "queued" || item.status === "sending" || (item.kind === "request" && isOpen(item));

/** The items to show in the conversation. @param {Conversation} conversation */
export const shownItems = ({ order, floor }) =>
  order.slice(placeOf(order, floor)).filter((item) => !isWaiting(item));

/** @param {Item} item @returns {string} the text of its parts */
export const textOf = ({ content }) =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** @returns {Conversation} */
export const emptyConversation = () => ({
  items: new Map(),
  order: [],
  turn: { state: "idle", since: null, waiting_for: null },
  usage: NO_USAGE,
  seq: 0,
  turnSeq: 0,
  older: null,
  floor: -Infinity,
});

/** Begins again with the newest page. @param {Conversation} conversation @param {ConversationPage} page */
export const applySnapshot = (conversation, page) => {
  Object.assign(conversation, emptyConversation(), {
    turn: page.state,
    usage: page.usage,
    seq: page.seq,
    turnSeq: page.seq,
  });
  applyOlder(conversation, page);
  for (const item of [...page.queue, ...page.requests]) put(conversation, item);
};

/** Adds the page before. @param {Conversation} conversation @param {ConversationPage} page */
export const applyOlder = (conversation, page) => {
  conversation.older = page.next_cursor;
  conversation.floor =
    page.next_cursor === null ? -Infinity : (page.items.at(-1)?.place ?? conversation.floor);
  for (const item of page.items.toReversed()) put(conversation, item);
};

/** A new version of an item. @param {Conversation} conversation @param {Item} item */
export const applyItem = (conversation, item) => {
  conversation.seq = Math.max(conversation.seq, item.seq);
  put(conversation, item);
};

/**
 * @param {Conversation} conversation
 * @param {{state: Turn, usage: Usage}} changed the service's event `state`
 * @param {number} seq
 */
export const applyState = (conversation, { state: turn, usage }, seq) => {
  if (seq < conversation.turnSeq) return;
  Object.assign(conversation, { turn, usage, turnSeq: seq, seq: Math.max(conversation.seq, seq) });
};

/** @param {Conversation} conversation @param {TextDelta} delta */
export const applyDelta = (conversation, { item_id: id, offset, text }) => {
  const item = conversation.items.get(id);
  if (item === undefined || !isOpen(item)) return;
  const index = item.content.findLastIndex((part) => part.type === "text");
  const part = item.content[index];
  const known = part?.type === "text" ? part.text : "";
  if (known.length !== offset) return;
  /** @type {import("./wire.d.ts").ContentPart} */
  const longer = { type: "text", text: known + text };
  const content = index < 0 ? [...item.content, longer] : item.content.with(index, longer);
  replace(conversation, item, { ...item, content });
};

/** @param {Conversation} conversation @param {string} id @param {number} seq */
export const applyRemoved = (conversation, id, seq) => {
  conversation.seq = Math.max(conversation.seq, seq);
  const item = conversation.items.get(id);
  if (item !== undefined) drop(conversation, item);
};

/** @param {Conversation} conversation @param {Item} item */
const drop = ({ items, order }, item) => {
  items.delete(item.id);
  order.splice(placeOf(order, item.place), 1);
};

/** @param {Item[]} order @param {number} place @returns {number} the index of the first item at or after this place */
export const placeOf = (order, place) => {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((order[middle]?.place ?? Infinity) < place) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** @param {Conversation} conversation @param {Item} item */
const put = (conversation, item) => {
  const known = conversation.items.get(item.id);
  if (known !== undefined && known.seq >= item.seq) return;
  if (item.place < conversation.floor && !isWaiting(item)) {
    if (known !== undefined) drop(conversation, known);
    return;
  }
  replace(conversation, known, item);
};

/** @param {Conversation} conversation @param {Item | undefined} known @param {Item} item */
const replace = ({ items, order }, known, item) => {
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
