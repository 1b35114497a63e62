/**
 * The calls that change a conversation, except for sending a message: cancel one, end the turn, resume the queue, answer a
 * request. It does not use the document.
 *
 *  G1 The conversation is changed by the service only. This file keeps which calls are under way, and what they refused.
 *  G2 A request's record is replaced and never changed, so that a view sees a change by comparing.
 */
import { ApiError, post, remove } from "./api.js";
import { applyEarly } from "./conversation-model.js";

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./wire.d.ts").Answer} Answer */
/** @typedef {import("./conversation-model.js").Conversation} Conversation */
/** @typedef {{choice: "once" | "always" | "reject", message?: string} | {answers: string[][]}} Reply */

/**
 * @typedef {object} Asked what this page knows of a request beside its item
 * @property {boolean} busy
 * @property {string | null} problem
 * @property {Answer | null} settled the answer of somebody who was faster
 */

/** @type {Asked} */
export const NOT_ANSWERED = { busy: false, problem: null, settled: null };

/** @typedef {ReturnType<typeof makeSteering>} Steering */

/**
 * @param {string} path of the session in the API
 * @param {Conversation} conversation
 * @param {{changed: () => void, told: (problem: string) => void}} listener told: "" once the reader tries
 * the next thing
 */
export const makeSteering = (path, conversation, { changed, told }) => {
  /** @type {Set<string>} */
  const busy = new Set();
  /** @type {Map<string, Asked>} */
  const asked = new Map();

  /** @param {string} name a call of this name is made once at a time @param {() => Promise<unknown>} work */
  const once = async (name, work) => {
    if (busy.has(name)) return;
    busy.add(name);
    told("");
    changed();
    try {
      await work();
    } catch (error) {
      told(wordsOf(error));
    }
    busy.delete(name);
    changed();
  };

  /** @param {string} id @param {Partial<Asked>} change */
  const note = (id, change) => {
    asked.set(id, { ...NOT_ANSWERED, ...change });
    changed();
  };

  return {
    /** The names of the calls under way: "stop", "resume", and the ids of messages that are being cancelled. */
    busy,

    /** @param {string} id */
    askedOf: (id) => asked.get(id) ?? NOT_ANSWERED,

    /** @param {string} id of a message that waits */
    cancel: (id) => once(id, () => remove(`${path}/messages/${id}`)),
    stop: () => once("stop", () => post(`${path}/interrupt`)),
    resume: () => once("resume", () => post(`${path}/queue/resume`)),

    /** @param {string} id @param {string} problem why the reader's answer was not sent */
    refuse: (id, problem) => note(id, { problem }),

    /** @param {string} id of a request @param {Reply} reply @returns {Promise<boolean>} whether this answer counts */
    answer: async (id, reply) => {
      if (asked.get(id)?.busy === true) return false;
      note(id, { busy: true });
      try {
        const { request } = await post(`${path}/requests/${id}/answer`, reply);
        applyEarly(conversation, request);
        note(id, {});
        return true;
      } catch (error) {
        const settled = settledBy(error);
        note(id, settled === null ? { problem: wordsOf(error) } : { settled });
        return false;
      }
    },
  };
};

/** @param {unknown} error */
const wordsOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {unknown} error @returns {Answer | null} the answer that the service already had */
const settledBy = (error) =>
  error instanceof ApiError && error.code === "request_settled"
    ? { at: "", ...error.details?.answer, by: error.details?.by ?? null }
    : null;
