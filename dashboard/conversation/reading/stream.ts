/** Reads a session's conversation: its newest page, what changes after it, and older pages when the reader asks. */
import { ApiError, getJson, getText } from "../../api/api.ts";
import {
  applyDelta,
  applyItem,
  applyOlder,
  applySnapshot,
  applyState,
  applyText,
  type Conversation,
  emptyConversation,
  lacksText,
} from "./model.ts";
import { hearProject, type Listener } from "../../live/live.ts";
import { keepStream, type Stream } from "../../live/stream.ts";
import type { Item, TextDelta } from "../../wire.d.ts";

const PAGE = 100;
/** How many items are kept for a reader who is at the end. Older ones are read again when the reader asks for them. */
const KEPT = 1000;
/** How many of them are read when the others are forgotten: more than are in the document. */
const NEWEST = 200;
/** After a page of it could not be read. */
const AGAIN_MS = 5000;

export interface Reading {
  conversation: Conversation;
  /** Whether the newest page was read. */
  heard: boolean;
  /** Why the last reading failed. */
  problem: string | null;
  /** Whether an older page is being read. */
  reading: boolean;
  readOlder: () => void;
  /** If there are too many items, begins again with the newest page. */
  forget: () => void;
  end: () => void;
}

/** Follows a conversation. @param path of the session in the API @param project hears by the same stream that its project has changed */
export const followConversation = (path: string, changed: () => void, project: Listener): Reading => {
  let stream: Stream | null = null;
  let again: ReturnType<typeof globalThis.setTimeout> | undefined;
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
  const readText = async (id: string) => {
    try {
      applyText(conversation, id, await getText(`${path}/items/${id}/text`));
    } catch (error) {
      reading.problem = problemOf(error);
    }
    if (!ended) changed();
  };
  const open = () => {
    const events = new EventSource(`${path}/conversation/events?after=${conversation.seq}&project=1`);
    const on = <A>(name: string, apply: (data: A, seq: number) => void) =>
      events.addEventListener(name, ({ data, lastEventId }) => {
        apply(JSON.parse(data), Number(lastEventId));
        changed();
      });
    on<Item>("item", (item) => {
      applyItem(conversation, item);
      if (lacksText(conversation, item)) void readText(item.id);
    });
    on<Parameters<typeof applyState>[1]>("state", (state, seq) => applyState(conversation, state, seq));
    on<TextDelta>("delta", (delta) => applyDelta(conversation, delta));
    events.addEventListener("reset", () => void start());
    hearProject(events, project);
    return events;
  };
  const reading: Reading = {
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

const readOlder = async (reading: Reading, path: string, changed: () => void) => {
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

const problemOf = (error: unknown) => (error instanceof ApiError ? error.message : String(error));
