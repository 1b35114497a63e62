/**
 * A session's conversation on its page. It draws itself, because text that grows changes several times a second. At most
 * `WINDOW` items are in the document; scrolling moves this window, and reads older pages at its beginning.
 */
import { finishedTools, isOpen, openRequests, placeOf, shownItems } from "./conversation-model.js";
import { followConversation } from "./conversation-stream.js";
import { makeFoot } from "./conversation-foot.js";
import { h, morph } from "./dom.js";
import { itemView } from "./items.js";
import { listenToAnswers } from "./answers.js";

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./conversation-stream.js").Reading} Reading */
/** @typedef {import("./conversation-foot.js").Foot} Foot */
/** @typedef {import("./steering.js").Asked} Asked */
/** @typedef {{element: HTMLElement, item: Item | null, isOpened: boolean, asked: Asked | null}} Row */

/**
 * @typedef {object} Shown the elements, and what of the conversation is in them
 * @property {string} path of the session in the API
 * @property {HTMLElement} root
 * @property {HTMLElement} head
 * @property {HTMLElement} log
 * @property {HTMLElement} edge above the oldest item
 * @property {HTMLElement} list
 * @property {HTMLElement} jump
 * @property {Foot} foot
 * @property {Map<string, Row>} rows by the item's id
 * @property {Set<string>} opened ids of items whose details the reader opened
 * @property {Map<string, import("./requests.js").Draft>} drafts what the reader chose and typed, by the request's id
 * @property {boolean} follows whether new items scroll into view
 * @property {number} from the first item's place, while it does not follow
 * @property {number} start index of the first item
 * @property {number} total how many items there are
 * @property {number} height of the log when it was last kept at its end
 * @property {number} full the height of its content then
 * @property {string} agent
 */

const WINDOW = 120;
const STEP = 60;
/** This near to an end, in pixels, counts as at it; the window moves a bit before. */
const AT_END = 32;
const NEAR_END = 240;
const DRAW_MS = 100;
/** A slow drawing leaves the page this many times as long to itself. */
const REST = 4;
/** This much of a request, in pixels, is enough to see that there is one. */
const SEEN = 72;
/** Above a request that the reader goes to, in pixels. */
const MARGIN = 12;

/** The place of the conversation in the session's page. */
export const conversationPlace = () => h("div", { "data-own": "conversation", "data-key": "conversation" });

/** @param {string} path of the session in the API @param {Foot} foot @returns {Shown} */
const makeShown = (path, foot) => {
  const head = h("div", { class: "turn" });
  const edge = h("div", { class: "edge" });
  const list = h("ol", { class: "items" });
  const log = h(
    "div",
    { class: "talk", role: "log", tabindex: 0, "aria-label": "Conversation" },
    edge,
    list,
    foot.next,
  );
  const jump = h("p", { class: "jump" });
  const root = h(
    "div",
    { class: "conversation" },
    head,
    h("div", { class: "talk-frame" }, log, jump),
    foot.element,
  );
  return {
    path,
    root,
    head,
    log,
    edge,
    list,
    jump,
    foot,
    rows: new Map(),
    opened: new Set(),
    drafts: new Map(),
    follows: true,
    from: 0,
    start: 0,
    total: 0,
    height: 0,
    full: 0,
    agent: "Agent",
  };
};

/**
 * Follows a session's conversation and shows it.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed called when the page around it has to change
 * @param {import("./live.js").Listener} project
 */
export const showConversation = (path, changed, project) => {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let drawing;
  let rest = DRAW_MS;
  let told = "";
  const draw = () => {
    clearTimeout(drawing);
    drawing = undefined;
    const before = performance.now();
    drawConversation(shown, reading);
    if (shown.follows) reading.forget();
    // An older page may have arrived while the reader waits at the upper end.
    scrolled(shown, reading);
    rest = Math.max(DRAW_MS, REST * (performance.now() - before));
    const { conversation } = reading;
    const tells = `${reading.heard} ${conversation.turn.state} ${openRequests(conversation).length} ${finishedTools(conversation)}`;
    if (told !== tells) changed();
    told = tells;
  };
  const drawSoon = () => {
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    drawing ??= setTimeout(draw, rest);
  };
  const reading = followConversation(path, drawSoon, project);
  // The reader sees the effect of what they did at once.
  const foot = makeFoot(path, reading, { changed: draw, sent: () => toEnd(shown, reading) });
  const shown = makeShown(path, foot);
  listen(shown, reading);
  // The log gets smaller while a reader types.
  const sizes = new ResizeObserver(() => {
    stayAtEnd(shown);
    tellHidden(shown, reading);
  });
  sizes.observe(shown.log);
  // A picture takes its room once it is loaded. The event does not bubble.
  shown.log.addEventListener("load", () => stayAtEnd(shown), true);
  return {
    reading,
    /** Puts it into the page. @param {HTMLElement} main @param {import("./conversation-foot.js").Around} around */
    show: (main, around) => {
      const place = main.querySelector("[data-own=conversation]");
      if (place === null) return;
      const agent = around.session.agent_name;
      const isNew = shown.root.parentNode !== place;
      if (isNew) place.replaceChildren(shown.root);
      if (shown.agent !== agent) for (const row of shown.rows.values()) row.item = null;
      foot.around(around);
      // The page and the conversation show the same state.
      if (isNew || shown.agent !== agent || drawing !== undefined) {
        shown.agent = agent;
        draw();
      }
      if (isNew) foot.composer.fit();
    },
    end: () => {
      clearTimeout(drawing);
      sizes.disconnect();
      foot.end();
      reading.end();
    },
  };
};

/** @param {Shown} shown @param {Reading} reading */
const listen = (shown, reading) => {
  const { root, log, opened } = shown;
  log.addEventListener("scroll", () => scrolled(shown, reading));
  log.addEventListener("keydown", (event) => {
    if (event.key === "End" && event.target === log) toEnd(shown, reading);
  });
  root.addEventListener("click", (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("button[data-move]") : null;
    const move = pressed?.getAttribute("data-move");
    if (move === "end") {
      toEnd(shown, reading);
      log.focus({ preventScroll: true });
    }
    if (move === "older") earlier(shown, reading);
    if (move === "request") showRequest(shown, reading, pressed?.getAttribute("data-id") ?? "");
  });
  // This event does not bubble.
  const toggled = (/** @type {Event} */ event) => {
    const id =
      event.target instanceof Element ? event.target.closest("[data-item]")?.getAttribute("data-item") : null;
    if (!(event.target instanceof HTMLDetailsElement) || !id || event.target.open === opened.has(id)) return;
    if (event.target.open) opened.add(id);
    else opened.delete(id);
    // The opened details stay where they are.
    stopFollowing(shown);
    drawConversation(shown, reading);
    scrolled(shown, reading);
  };
  root.addEventListener("toggle", toggled, true);
  listenToAnswers(log, {
    conversation: reading.conversation,
    drafts: shown.drafts,
    steering: shown.foot.steering,
  });
};

/** @param {Shown} shown @param {Reading} reading */
const drawConversation = (shown, reading) => {
  const { head, edge, jump, log, foot } = shown;
  const all = shownItems(reading.conversation);
  shown.total = all.length;
  shown.start = shown.follows ? Math.max(0, all.length - WINDOW) : placeOf(all, shown.from);
  const anchor = shown.follows ? null : anchorOf(shown);
  morph(head, [
    reading.problem !== null &&
      h("p", { class: "refusal" }, `The conversation could not be read. ${reading.problem}`),
  ]);
  morph(edge, edgeView(shown, reading));
  drawRows(shown, all.slice(shown.start, shown.start + WINDOW));
  const below = all.length - shown.start - WINDOW;
  morph(jump, [
    !shown.follows &&
      h("button", { type: "button", "data-move": "end" }, below > 0 ? `Newest (${below} more)` : "Newest"),
  ]);
  foot.next.hidden = below > 0;
  foot.draw();
  // Only what is added at the end is news.
  log.setAttribute("aria-live", shown.follows ? "polite" : "off");
  if (!shown.follows) keepAt(shown, anchor);
  stayAtEnd(shown);
};

/** @param {Shown} shown @param {Reading} reading */
const edgeView = ({ start, total }, { conversation, heard, reading }) => {
  if (!heard || reading) return [h("p", { class: "quiet" }, "Loading…")];
  if (start > 0 || conversation.older !== null)
    return [h("button", { type: "button", "data-move": "older" }, "Show older items")];
  if (total > 0) return [h("p", { class: "quiet" }, "The conversation begins here.")];
  // A first message may wait for the sandbox.
  return [conversation.order.length === 0 && h("p", { class: "quiet" }, "Nothing was said yet.")];
};

/** @param {Shown} shown @param {Item[]} items */
const drawRows = ({ rows, list, opened, path, agent, log, drafts, foot }, items) => {
  const kept = new Set(items.map(({ id }) => id));
  for (const [id, { element }] of rows) {
    if (kept.has(id)) continue;
    if (element.contains(document.activeElement)) log.focus({ preventScroll: true });
    element.remove();
    rows.delete(id);
  }
  let cursor = list.firstElementChild;
  for (const item of items) {
    /** @type {Row} */
    const row = rows.get(item.id) ?? {
      element: h("li", { class: "item", "data-item": item.id }),
      item: null,
      isOpened: false,
      asked: null,
    };
    rows.set(item.id, row);
    const isOpened = opened.has(item.id);
    const asked = foot.steering.askedOf(item.id);
    if (row.item !== item || row.isOpened !== isOpened || row.asked !== asked) {
      const wasInside = row.element.contains(document.activeElement);
      drawRow(row, item, { path, agent, isOpened, asked, draft: drafts.get(item.id) ?? {} });
      // An answered request has no form any more.
      if (wasInside && !row.element.contains(document.activeElement)) log.focus({ preventScroll: true });
    }
    if (row.element === cursor) cursor = cursor.nextElementSibling;
    else list.insertBefore(row.element, cursor);
  }
};

/** @param {Row} row @param {Item} item @param {import("./items.js").Context} context */
const drawRow = (row, item, context) => {
  const { element } = row;
  const shownAs = { kind: item.kind, role: item.role ?? "", status: item.status };
  Object.assign(element.dataset, shownAs);
  element.toggleAttribute("data-nested", item.parent_id !== null);
  // A finished item is announced whole, and not each of its words.
  element.setAttribute("aria-busy", String(isOpen(item)));
  morph(element, itemView(item, context));
  row.item = item;
  row.isOpened = context.isOpened;
  row.asked = context.asked;
};

/** The first visible item, and where it is. @param {Shown} shown @returns {{element: HTMLElement, top: number} | null} */
const anchorOf = ({ log, rows }) => {
  const edge = log.getBoundingClientRect().top;
  /** @type {{element: HTMLElement, top: number} | null} */
  let first = null;
  for (const { element } of rows.values()) {
    const { top, bottom } = element.getBoundingClientRect();
    if (bottom > edge && (first === null || top < first.top)) first = { element, top };
  }
  return first;
};

/** @param {Shown} shown @param {{element: HTMLElement, top: number} | null} anchor */
const keepAt = ({ log }, anchor) => {
  if (anchor === null || !anchor.element.isConnected) return;
  const moved = anchor.element.getBoundingClientRect().top - anchor.top;
  if (moved !== 0) log.scrollTop += moved;
};

/** @param {Shown} shown */
const stayAtEnd = (shown) => {
  shown.height = shown.log.clientHeight;
  shown.full = shown.log.scrollHeight;
  if (shown.follows) shown.log.scrollTop = shown.full;
};

/** @param {Shown} shown */
const stopFollowing = (shown) => {
  if (!shown.follows) return;
  shown.follows = false;
  shown.from = [...shown.rows.values()].reduce(
    (least, { item }) => Math.min(least, item?.place ?? least),
    Infinity,
  );
};

/** @param {Shown} shown @param {Reading} reading */
const scrolled = (shown, reading) => {
  const { log } = shown;
  // A page that is not laid out does not scroll.
  if (log.clientHeight === 0) return;
  // The page may have changed the log's height or its content. Then the position is still the former end. A reader who scrolls up
  // is above it.
  const end = shown.full - Math.max(shown.height, log.clientHeight);
  if (shown.follows && log.scrollTop >= end - AT_END) stayAtEnd(shown);
  const below = log.scrollHeight - log.scrollTop - log.clientHeight;
  const isComplete = shown.start + WINDOW >= shown.total;
  const follows = isComplete && below <= AT_END;
  if (follows !== shown.follows) {
    if (follows) shown.follows = true;
    else stopFollowing(shown);
    drawConversation(shown, reading);
  }
  tellHidden(shown, reading);
  if (!shown.follows && log.scrollTop < NEAR_END) earlier(shown, reading);
  else if (!isComplete && below < NEAR_END) later(shown, reading);
};

/** A request that is in view needs no bar. @param {Shown} shown @param {Reading} reading */
const tellHidden = (shown, { conversation }) =>
  shown.foot.tellHidden(openRequests(conversation).filter(({ id }) => !isSeen(shown, id)));

/** @param {Shown} shown @param {Reading} reading */
const earlier = (shown, reading) => {
  stopFollowing(shown);
  if (shown.start === 0) {
    reading.readOlder();
    return;
  }
  move(shown, reading, Math.max(0, shown.start - STEP));
};

/** @param {Shown} shown @param {Reading} reading */
const later = (shown, reading) =>
  move(shown, reading, Math.min(shown.start + STEP, Math.max(0, shown.total - WINDOW)));

/** @param {Shown} shown @param {Reading} reading @param {number} start index of the window's first item */
const move = (shown, reading, start) => {
  shown.from = shownItems(reading.conversation)[start]?.place ?? shown.from;
  drawConversation(shown, reading);
};

/** @param {Shown} shown @param {Reading} reading */
const toEnd = (shown, reading) => {
  shown.follows = true;
  drawConversation(shown, reading);
};

/** Whether the reader sees the item. @param {Shown} shown @param {string} id */
const isSeen = ({ log, rows }, id) => {
  const element = rows.get(id)?.element;
  if (element === undefined) return false;
  const [view, card] = [log.getBoundingClientRect(), element.getBoundingClientRect()];
  const visible = Math.min(view.bottom, card.bottom) - Math.max(view.top, card.top);
  return visible >= Math.min(SEEN, card.height);
};

/** Scrolls to a request, and begins its answer. @param {Shown} shown @param {Reading} reading @param {string} id */
const showRequest = (shown, reading, id) => {
  const { log, rows } = shown;
  const all = shownItems(reading.conversation);
  const index = all.findIndex((item) => item.id === id);
  if (index === -1) return;
  stopFollowing(shown);
  if (!rows.has(id)) move(shown, reading, Math.max(0, index - STEP));
  const element = rows.get(id)?.element;
  if (element === undefined) return;
  const before = element.getBoundingClientRect().top - log.getBoundingClientRect().top;
  log.scrollTop += before - MARGIN;
  drawConversation(shown, reading);
  const first = element.querySelector("button, input, textarea");
  if (first instanceof HTMLElement) first.focus({ preventScroll: true });
  scrolled(shown, reading);
};
