/**
 * `GET /platform/logs`: the log as server-sent events, from the line after `Last-Event-ID` on, and then each new line.
 * A reader gets as much as fits its connection, and the rest from the ring once that is sent. A slow reader only loses
 * the lines that are dropped before it reads them, and the line numbers show the gap.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { answerError } from "../http/answer.ts";
import type { LogRing } from "./log-ring.ts";

/** A comment this often keeps the connection open (api.md 1 "Live data"). */
const KEEP_ALIVE_MS = 15_000;
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
  let isBlocked = false;
  let awake = false;
  const send = (): void => {
    awake = false;
    while (!isBlocked && response.writable) {
      const lines = ring.after(lastSeen, PORTION_BYTES);
      const last = lines.at(-1);
      if (last === undefined) return;
      lastSeen = last.seq;
      isBlocked = !response.write(lines.map(({ seq, text }) => `id: ${seq}\ndata: ${text}\n\n`).join(""));
    }
  };
  const wake = (): void => {
    if (awake || isBlocked) return;
    awake = true;
    // Lines come in bursts, synchronously. One portion serves a whole burst.
    setImmediate(send);
  };
  response.on("drain", () => {
    isBlocked = false;
    wake();
  });
  const forget = ring.listen(wake);
  // oxlint-disable-next-line no-restricted-globals -- this file is the adapter to the outside world
  const keepAlive = setInterval(() => isBlocked || response.write(": keep\n\n"), KEEP_ALIVE_MS);
  response.once("close", () => {
    forget();
    clearInterval(keepAlive);
  });
  wake();
};
