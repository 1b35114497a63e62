/** Streams whose text comes in bursts, such as a log. */
import type { ServerResponse } from "node:http";

/** A client or a proxy gives a silent connection up (api.md 1 "Live data"). */
const BEAT_MS = 15_000;

interface Reader {
  /** The next portion. Empty: nothing is new. */
  readonly take: () => string;
  readonly close: () => void;
}

/**
 * Sends what a reader takes, no faster than the client reads it, until the connection closes.
 *
 * @param attach begins to read. The reader calls `wake` when something is new
 * @param beat what is sent at intervals, so that the client sees that the connection lives
 */
export const sendPortions = (
  response: ServerResponse,
  attach: (wake: () => void) => Reader,
  beat: string,
): void => {
  let isBlocked = false;
  let awake = false;
  const send = (): void => {
    awake = false;
    while (!isBlocked && response.writable) {
      const portion = reader.take();
      if (portion === "") return;
      isBlocked = !response.write(portion);
    }
  };
  const wake = (): void => {
    if (awake || isBlocked) return;
    awake = true;
    // News comes in bursts, synchronously. One portion serves a whole burst.
    setImmediate(send);
  };
  const reader = attach(wake);
  response.on("drain", () => {
    isBlocked = false;
    wake();
  });
  // oxlint-disable-next-line no-restricted-globals -- this file is the adapter to the outside world
  const beating = setInterval(() => isBlocked || response.write(beat), BEAT_MS);
  response.once("close", () => {
    reader.close();
    clearInterval(beating);
  });
  wake();
};
