/**
 * `GET /platform/conversation?after={rev}`: the conversation as lines of JSON (`ConversationReport`). First every item
 * with a newer version, then the turn, then whatever changes. A reader gets as much as its connection takes. While it
 * takes nothing, its deltas are dropped, and of each item it gets the newest version later.
 */
import type { ServerResponse } from "node:http";
import { answerError } from "../http/answer.ts";
import { sendPortions } from "../http/portions.ts";
import type { ConversationFeed } from "./feed.ts";

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
  const attach = (wake: () => void) => {
    const reader = feed.attach(after, wake);
    return { take: () => reader.take(PORTION_LENGTH), close: () => reader.close() };
  };
  sendPortions(response, attach, "\n");
};
