/** Below a conversation: a bar for requests out of view, the queue, what the agent does, the composer, and the cost. */
import { applyEarly, plainQuestion, textOf, waitingMessages } from "./conversation-model.js";
import { makeComposer } from "./composer.js";
import { h, morph } from "./dom.js";
import { nextView, queueView } from "./message-queue.js";
import { makeOutbox } from "./outbox.js";
import { lackedRole, readOnly } from "./roles.js";
import { makeSteering } from "./steering.js";
import { askBarView, costView, turnView } from "./turn.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./conversation-stream.js").Reading} Reading */
/** @typedef {{session: Session, me: string}} Around what the page knows beside the conversation */
/** @typedef {ReturnType<typeof makeFoot>} Foot */

const TICK_MS = 1000;
const LIVE = new Set(["provisioning", "running"]);

const makeElements = () => ({
  next: h("ol", { class: "next-messages", "aria-label": "Messages on their way" }),
  askBar: h("div", { class: "ask-bar", role: "status" }),
  queue: h("section", { class: "waiting-items", "aria-label": "Queue" }),
  turn: h("p", { class: "turn-state" }),
  readOnly: h("div", { class: "read-only" }),
  cost: h("p", { class: "costs quiet" }),
});

/** Until the session is known. @type {Pick<Session, "status" | "pending_approvals">} */
const AT_FIRST = { status: "running", pending_approvals: 0 };

/**
 * @param {string} path of the session in the API
 * @param {Reading} reading
 * @param {{changed: () => void, sent: () => void}} listener sent: a message was sent that the agent gets now
 */
export const makeFoot = (path, reading, { changed, sent }) => {
  const { conversation } = reading;
  const shown = makeElements();
  /** @type {{session: typeof AT_FIRST, me: string}} */
  let around = { session: AT_FIRST, me: "You" };
  const steering = makeSteering(path, conversation, { changed, told: (problem) => composer.say(problem) });
  const outbox = makeOutbox(path, {
    changed,
    taken: (item) => applyEarly(conversation, item),
    refused: (message, error) => composer.refused(message, error),
  });
  const composer = makeComposer(path, {
    send: (message) => {
      outbox.send(message);
      if (waitingNow().isNext) sent();
    },
    stop: () => void steering.stop(),
    answer: async (text) => {
      const { counts, problem } = await answerInWords(conversation, steering, text);
      composer.say(problem);
      return counts;
    },
  });
  const element = footOf(shown, composer);

  /** @returns {import("./message-queue.js").Waiting} */
  const waitingNow = () => {
    const { status } = around.session;
    const isLive = LIVE.has(status);
    const { next, queue } = waitingMessages(conversation, isLive);
    const isNext = conversation.turn.state === "idle" && queue.length === 0;
    const { held } = conversation;
    // Until the conversation is known, it may have them.
    const own = reading.heard ? outbox.sent : [];
    return { next, queue, sent: own, isNext, held, status, busy: steering.busy, me: around.me, path };
  };

  const drawTurn = () => morph(shown.turn, reading.heard ? turnView(conversation, around.session) : []);
  const draw = () => {
    outbox.settle((id) => conversation.items.has(id));
    const waiting = waitingNow();
    keepFocus([element, shown.next], composer, () => {
      morph(shown.next, nextView(waiting));
      morph(shown.queue, queueView(waiting));
      composer.update(momentOf(reading, around.session.status, steering));
    });
    drawTurn();
    allow(composer.element, shown.readOnly);
    morph(shown.cost, reading.heard ? costView(conversation) : []);
  };
  listen([shown.next, shown.queue], { steering, outbox, composer });
  editLast(composer, () => conversation.order.findLast((item) => item.author?.name === around.me));
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  const ticking = setInterval(drawTurn, TICK_MS);

  return {
    element,
    /** The messages at the end of the conversation, which belong into its log. */
    next: shown.next,
    steering,
    composer,
    ...remediesOf({ outbox, composer, sent }),
    draw,
    /** @param {Around} next */
    around: (next) => {
      around = next;
      draw();
    },
    /** @param {import("./wire.d.ts").Item[]} hidden requests that the reader does not see */
    tellHidden: (hidden) => morph(shown.askBar, askBarView(hidden)),
    end: () => {
      clearInterval(ticking);
      outbox.end();
    },
  };
};

/**
 * The remedies of a reader after a turn that failed.
 *
 * @param {{outbox: import("./outbox.js").Outbox, composer: import("./composer.js").Composer, sent: () => void}} parts
 */
const remediesOf = ({ outbox, composer, sent }) => ({
  chooseModel: () => {
    const choices = composer.element.querySelector("button[aria-controls=message-choices]");
    if (choices instanceof HTMLElement && choices.getAttribute("aria-expanded") !== "true") choices.click();
    composer.element.querySelector("select")?.focus();
  },
  tryAgain: () => {
    outbox.send({ text: "Try again.", delivery: "queue" });
    sent();
  },
});

/**
 * @param {Reading} reading
 * @param {string} status of the session
 * @param {import("./steering.js").Steering} steering
 * @returns {import("./composer.js").Moment}
 */
const momentOf = ({ conversation, heard }, status, { busy }) => ({
  status,
  turn: conversation.turn.state,
  stopping: busy.has("stop"),
  isFirst: heard && !conversation.order.some(({ role }) => role === "agent"),
  asksInWords: LIVE.has(status) && plainQuestion(conversation) !== null,
  model: conversation.order.findLast(({ model }) => model !== null)?.model ?? null,
});

/**
 * Answers the agent's question with the reader's words. The reader may be late.
 *
 * @param {import("./conversation-model.js").Conversation} conversation
 * @param {import("./steering.js").Steering} steering
 * @param {string} text
 */
const answerInWords = async (conversation, steering, text) => {
  const id = plainQuestion(conversation);
  if (id === null) return { counts: false, problem: "" };
  const counts = await steering.answer(id, { answers: [[text]] });
  return { counts, problem: steering.askedOf(id).problem ?? "" };
};

/** @param {ReturnType<typeof makeElements>} shown @param {import("./composer.js").Composer} composer */
const footOf = ({ askBar, queue, turn, readOnly: instead, cost }, composer) =>
  h("div", { class: "foot" }, [askBar, queue, turn, composer.alert, composer.element, instead, cost]);

/** Readers who may not write see why, in place of the composer. @param {HTMLElement} element @param {HTMLElement} instead */
const allow = (element, instead) => {
  element.hidden = lackedRole("send-message") !== null;
  morph(instead, element.hidden ? [readOnly("send-message")] : []);
};

/**
 * @param {HTMLElement[]} elements
 * @param {{steering: import("./steering.js").Steering, outbox: import("./outbox.js").Outbox, composer: import("./composer.js").Composer}} parts
 */
const listen = (elements, { steering, outbox, composer }) => {
  /** @param {MouseEvent} event */
  const pressed = ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    const { cancel, again, takeBack, resume } = button?.dataset ?? {};
    if (cancel !== undefined) void steering.cancel(cancel);
    if (resume !== undefined) void steering.resume();
    if (again !== undefined) outbox.again(again);
    const message = takeBack === undefined ? null : outbox.takeBack(takeBack);
    if (message !== null) {
      composer.putBack(message);
      composer.focus();
    }
  };
  for (const element of elements) element.addEventListener("click", pressed);
};

/**
 * The arrow up in an empty composer brings the reader's last message back into it, to be changed and sent anew.
 *
 * @param {import("./composer.js").Composer} composer
 * @param {() => import("./wire.d.ts").Item | undefined} lastOwn
 */
const editLast = ({ element, putBack }, lastOwn) =>
  element.addEventListener("keydown", (event) => {
    const { target, key, isComposing } = event;
    if (!(target instanceof HTMLTextAreaElement) || target.value !== "" || key !== "ArrowUp" || isComposing)
      return;
    const last = lastOwn();
    if (last === undefined) return;
    event.preventDefault();
    putBack({ text: textOf(last) });
  });

/**
 * If the pressed button disappears, the reader goes on in the composer.
 *
 * @param {HTMLElement[]} elements
 * @param {import("./composer.js").Composer} composer
 * @param {() => void} change
 */
const keepFocus = (elements, composer, change) => {
  const focused = document.activeElement;
  const wasInside = elements.some((element) => element.contains(focused));
  change();
  if (wasInside && focused?.isConnected === false) composer.focus();
};
