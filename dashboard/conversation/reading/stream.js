/** Reads a session's conversation: its newest page, what changes after it, and older pages when the reader asks. */
import { ApiError, getJson, getText } from "../../api/api.js";
import {
  applyDelta,
  applyItem,
  applyOlder,
  applySnapshot,
  applyState,
  applyText,
  emptyConversation,
  lacksText,
} from "./model.js";
import { hearProject } from "../../live/live.js";
import { keepStream } from "../../live/stream.js";

const PAGE = 100;
/** How many items are kept for a reader who is at the end. Older ones are read again when the reader asks for them. */
const KEPT = 1000;
/** How many of them are read when the others are forgotten: more than are in the document. */
const NEWEST = 200;
/** After a page of it could not be read. */
const AGAIN_MS = 5000;

/**
 * @typedef {object} Reading
 * @property {import("./model.js").Conversation} conversation
 * @property {boolean} heard whether the newest page was read
 * @property {string | null} problem why the last reading failed
 * @property {boolean} reading whether an older page is being read
 * @property {() => void} readOlder
 * @property {() => void} forget if there are too many items, begins again with the newest page
 * @property {() => void} end
 */

/**
 * Follows a conversation.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed
 * @param {import("../../live/live.js").Listener} project hears by the same stream that its project has changed
 * @returns {Reading}
 */
export const followConversation = (path, changed, project) => {
  /** @type {import("../../live/stream.js").Stream | null} */
  let stream = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  let ended = false;
  /** Above this number of items, a reader who is at the end begins again. */
  let limit = KEPT;
  const conversation = emptyConversation();
  const start = async () => {
    clearTimeout(again);
    try {
      const page = await getJson(`${path}/conversation?limit=${reading.heard ? NEWEST : PAGE}`);
      if (ended) return;
      applySnapshot(conversation, page);
      reading.heard = true;
      reading.problem = null;
      limit = KEPT;
      if (stream === null) stream = keepStream(open);
      else stream.restart();
    } catch (error) {
      if (ended) return;
      // The page still shows the items that it has, and the stream goes on after them.
      if (!reading.heard) reading.problem = problemOf(error);
      // eslint-disable-next-line no-restricted-globals -- the browser's timer
      if (stream === null) again = setTimeout(start, AGAIN_MS);
      else stream.restart();
    }
    changed();
  };
  /** @param {string} id */
  const readText = async (id) => {
    try {
      applyText(conversation, id, await getText(`${path}/items/${id}/text`));
    } catch (error) {
      reading.problem = problemOf(error);
    }
    if (!ended) changed();
  };
  const open = () => {
    const events = new EventSource(`${path}/conversation/events?after=${conversation.seq}&project=1`);
    /** @param {string} name @param {(data: any, seq: number) => void} apply */
    const on = (name, apply) =>
      events.addEventListener(name, ({ data, lastEventId }) => {
        apply(JSON.parse(data), Number(lastEventId));
        changed();
      });
    on("item", (item) => {
      applyItem(conversation, item);
      if (lacksText(conversation, item)) void readText(item.id);
    });
    on("state", (state, seq) => applyState(conversation, state, seq));
    on("delta", (delta) => applyDelta(conversation, delta));
    events.addEventListener("reset", () => void start());
    hearProject(events, project);
    return events;
  };
  /** @type {Reading} */
  const reading = {
    conversation,
    heard: false,
    problem: null,
    reading: false,
    readOlder: () => void readOlder(reading, path, changed),
    forget: () => {
      if (conversation.order.length <= limit || reading.reading) return;
      // Once for each attempt: the next drawing may come before the answer.
      limit = conversation.order.length + KEPT;
      void start();
    },
    end: () => {
      ended = true;
      clearTimeout(again);
      stream?.end();
    },
  };
  void start();
  return reading;
};

/** @param {Reading} reading @param {string} path @param {() => void} changed */
const readOlder = async (reading, path, changed) => {
  const { conversation } = reading;
  const cursor = conversation.older;
  if (cursor === null || reading.reading) return;
  reading.reading = true;
  changed();
  try {
    const query = new URLSearchParams({ before: cursor, limit: String(PAGE) });
    const page = await getJson(`${path}/conversation?${query}`);
    // A reset meanwhile began again with another page.
    if (conversation.older === cursor) applyOlder(conversation, page);
    reading.problem = null;
  } catch (error) {
    reading.problem = problemOf(error);
  }
  reading.reading = false;
  changed();
};

/** @param {unknown} error */
const problemOf = (error) => (error instanceof ApiError ? error.message : String(error));
