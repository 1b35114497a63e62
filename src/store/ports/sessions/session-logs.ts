/**
 * The port to logs that outlive their sandboxes. It is one of the store's ports, with the same adapters (journal.ts).
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

/**
 * How many bytes of a session's logs are kept after its sandboxes are gone: the newest, over all its boots (api.md 3).
 */
export const LOG_KEPT_BYTES = 1024 * 1024;

/** A boot of a session that has a log, or may still get one. */
export interface LoggedBoot {
  readonly sandboxId: string;
  /** Its log is complete and kept here. Otherwise its sandbox still exists, or its end is not settled. */
  readonly isKept: boolean;
}

export class SessionLogs extends Context.Service<
  SessionLogs,
  {
    /**
     * Keeps a sandbox's log, once: a second call changes nothing. The session's oldest logs make room. For a deleted
     * session nothing is kept, and a deletion removes the kept logs (`Sessions.memory.save`).
     */
    readonly keep: (request: {
      readonly sandboxId: string;
      readonly text: string;
      readonly now: number;
    }) => Stored<void>;
    /** The session's boots, oldest first, without those whose logs are gone. */
    readonly boots: (sessionId: string) => Stored<readonly LoggedBoot[]>;
    /** Whole lines. Empty if no log is kept. */
    readonly read: (sandboxId: string) => Stored<string>;
  }
>()("platform/store/SessionLogs") {}

const NEWLINE = 0x0a;

/**
 * How logs make room. Both adapters use it, so that they cannot differ.
 *
 * @returns the newest whole lines, within that many bytes
 */
export const newestPart = (text: Buffer, bytes: number): Buffer => {
  if (text.length <= bytes) return text;
  const cut = text.length - bytes;
  // A cut right after the end of a line leaves a whole line.
  if (text[cut - 1] === NEWLINE) return text.subarray(cut);
  const end = text.indexOf(NEWLINE, cut);
  return end === -1 ? Buffer.alloc(0) : text.subarray(end + 1);
};
