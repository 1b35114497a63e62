/** Talking with what git starts, over descriptor 3: one line a question. */
import type { Duplex } from "node:stream";

/**
 * Hears the channel line by line. A line feed alone ends a line: names of refs hold what a client likes, and whatever
 * else some reader takes for a line's end would let it speak for the hook. A line longer than the limit ends the talk.
 */
export const listen = (channel: Duplex, maxLineBytes: number, hear: (line: string) => void): void => {
  let unread: Buffer = Buffer.alloc(0);
  channel.on("data", (chunk: Buffer) => {
    const heard = Buffer.concat([unread, chunk]);
    let from = 0;
    for (let end = heard.indexOf(0x0a); end !== -1; end = heard.indexOf(0x0a, from)) {
      hear(heard.toString("utf8", from, end));
      from = end + 1;
    }
    unread = heard.subarray(from);
    if (unread.length > maxLineBytes) channel.destroy();
  });
};
