/** Talks with git's child processes over descriptor 3: one line for each question. */
import type { Duplex } from "node:stream";

/**
 * Reads the channel line by line. Only a line feed ends a line: ref names may contain anything that a client likes, and
 * with any other line end a client could speak for the hook. A line over the limit ends the talk.
 */
export const listen = (channel: Duplex, maxLineBytes: number, hear: (line: string) => void): void => {
  let rest: Buffer = Buffer.alloc(0);
  channel.on("data", (chunk: Buffer) => {
    const bytes = Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, from)) {
      hear(bytes.toString("utf8", from, end));
      from = end + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > maxLineBytes) channel.destroy();
  });
};
