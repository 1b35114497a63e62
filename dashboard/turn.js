/** The agent's state, its cost, and the requests that wait outside of the reader's view. */
import { requestTitle, silentSince, turnUsage } from "./conversation-model.js";
import { h } from "./dom.js";
import { elapsed, now, usageText } from "./format.js";

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./wire.d.ts").Turn} Turn */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./conversation-model.js").Conversation} Conversation */

/** The state of a turn in a reader's words. @type {Record<Turn["state"], string>} */
export const TURN_WORDS = {
  idle: "Idle",
  running: "Working",
  requires_action: "Needs your answer",
};
/** A model that thinks says nothing for as long as this, ms. */
const SILENT_MS = 30_000;
const SESSION_WORDS = /** @type {Record<string, string>} */ ({
  provisioning: "The sandbox is starting",
  stopped: "The session is stopped",
  failed: "The session failed",
});

/** @param {Conversation} conversation @param {Pick<import("./wire.d.ts").Session, "status" | "pending_approvals">} session @returns {Child[]} */
export const turnView = (conversation, { status, pending_approvals: calls }) => {
  const { turn } = conversation;
  const outside = SESSION_WORDS[status];
  // The runtime counts a call that waits as work.
  const word = turn.state === "running" && calls > 0 ? "Waits for your approval" : TURN_WORDS[turn.state];
  const isAtWork = outside === undefined && turn.state !== "idle";
  const since = isAtWork && calls === 0 ? silentSince(conversation) : null;
  const silenceMs = since === null ? 0 : now() - since;
  return [
    h(
      "span",
      { class: "turn-word", "data-turn": outside === undefined ? turn.state : status, role: "status" },
      outside ?? word,
    ),
    // Outside of the status, so that it is not announced every second.
    isAtWork && turn.since !== null && h("span", {}, `for ${elapsed(now() - Date.parse(turn.since))}`),
    silenceMs >= SILENT_MS &&
      h("span", { class: "silence" }, `The model has been silent for ${elapsed(silenceMs)}`),
  ];
};

/** A turn that has ended has its cost at its end. @param {Conversation} conversation @returns {Child[]} */
export const costView = (conversation) => {
  const present = conversation.turn.state === "idle" ? null : turnUsage(conversation);
  return [
    present !== null && h("span", {}, `This turn: ${usageText(present)}`),
    h("span", {}, `Session: ${usageText(conversation.usage)}`),
  ];
};

/** The bar for requests that are not in view. @param {Item[]} hidden oldest first @returns {Child[]} */
export const askBarView = (hidden) => {
  const [first, ...others] = hidden;
  if (first === undefined || first.request === null) return [];
  return [
    h("span", { class: "ask-bar-text" }, requestTitle(first.request)),
    others.length > 0 && h("span", { class: "quiet" }, `and ${others.length} more`),
    h("button", { type: "button", "data-move": "request", "data-id": first.id, "data-key": "show" }, "Show"),
  ];
};
