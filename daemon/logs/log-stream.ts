/**
 * `GET /platform/logs`: the log as server-sent events, from the line after `Last-Event-ID` on, and then each new line.
 * A reader gets as much as fits its connection, and the rest from the ring once that is sent. A slow reader only loses
 * the lines that are dropped before it reads them, and the line numbers show the gap.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { answerError } from "../http/answer.ts";
import { sendPortions } from "../http/portions.ts";
import type { LogRing } from "./log-ring.ts";

/** How much is passed to the connection at once. */
const PORTION_BYTES = 64 * 1024;
/** The service's own limit is 100 for each token. */
const READERS_MAX = 256;

export class LogStreams {
  readonly #ring: LogRing;

  constructor(ring: LogRing) {
    this.#ring = ring;
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.#ring.listeners >= READERS_MAX) {
      return answerError(response, 503, {
        error: "Too many clients read this log.",
        code: "too_many_streams",
      });
    }
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.flushHeaders();
    follow(this.#ring, response, parsePlace(request.headers["last-event-id"]));
  }
}

/** An invalid number counts as the place before the first line. */
const parsePlace = (header: string | string[] | undefined): number =>
  typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : 0;

const follow = (ring: LogRing, response: ServerResponse, from: number): void => {
  let lastSeen = from;
  const take = (): string => {
    const lines = ring.after(lastSeen, PORTION_BYTES);
    lastSeen = lines.at(-1)?.seq ?? lastSeen;
    return lines.map(({ seq, text }) => `id: ${seq}\ndata: ${text}\n\n`).join("");
  };
  sendPortions(response, (wake) => ({ take, close: ring.listen(wake) }), ": keep\n\n");
};
