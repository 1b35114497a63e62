/**
 * `GET /platform/conversation?after={rev}`: the conversation as lines of JSON (`ConversationReport`). First every item
 * with a newer version, then the turn, then whatever changes. A reader gets as much as its connection takes. While it
 * takes nothing, its deltas are dropped, and of each item it gets the newest version later.
 */
import type { ServerResponse } from "node:http";
import { answerError } from "../http/answer.ts";
import type { ConversationFeed } from "./feed.ts";

/** A blank line this often keeps the connection open. */
const HEARTBEAT_MS = 15_000;
/** How much is passed to the connection at once. */
const PORTION_LENGTH = 64 * 1024;
/** The service follows with one reader. */
const READERS_MAX = 32;

export const answerConversation = (feed: ConversationFeed, after: number, response: ServerResponse): void => {
  if (feed.readers >= READERS_MAX) {
    return answerError(response, 503, {
      error: "Too many clients read this conversation.",
      code: "too_many_streams",
    });
  }
  response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
  response.flushHeaders();
  let isBlocked = false;
  let awake = false;
  const send = (): void => {
    awake = false;
    while (!isBlocked && response.writable) {
      const lines = reader.take(PORTION_LENGTH);
      if (lines === "") return;
      isBlocked = !response.write(lines);
    }
  };
  const wake = (): void => {
    if (awake || isBlocked) return;
    awake = true;
    // Changes come in bursts, synchronously. One portion serves a whole burst.
    setImmediate(send);
  };
  const reader = feed.attach(after, wake);
  response.on("drain", () => {
    isBlocked = false;
    wake();
  });
  // oxlint-disable-next-line no-restricted-globals -- this file is the adapter to the outside world
  const heartbeat = setInterval(() => isBlocked || response.write("\n"), HEARTBEAT_MS);
  response.once("close", () => {
    reader.close();
    clearInterval(heartbeat);
  });
  wake();
};
