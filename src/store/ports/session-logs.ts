/** The port to the logs that are kept after their sandboxes, one of the store's: the same adapters keep it (journal.ts). */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

/** Of what the sandboxes of a session wrote, kept after they are gone: the newest, over all its boots (api.md 3). */
export const LOG_KEPT_BYTES = 1024 * 1024;

/** A boot of a session that has, or may still have, a log. */
export interface LoggedBoot {
  readonly sandboxId: string;
  /** Its log is complete, and kept here; else its sandbox is there still, or its end is not settled. */
  readonly isKept: boolean;
}

export class SessionLogs extends Context.Service<
  SessionLogs,
  {
    /**
     * Keeps what a sandbox wrote, once and for good: a second call changes nothing. The oldest of the session's logs
     * make room. Of a deleted session nothing is kept, and a deletion removes what was (`Sessions.memory.save`).
     */
    readonly keep: (request: {
      readonly sandboxId: string;
      readonly text: string;
      readonly now: number;
    }) => Stored<void>;
    /** The session's boots, oldest first, without those whose logs are gone. */
    readonly boots: (sessionId: string) => Stored<readonly LoggedBoot[]>;
    /** Whole lines; empty where there is none. */
    readonly read: (sandboxId: string) => Stored<string>;
  }
>()("platform/store/SessionLogs") {}

const NEWLINE = 0x0a;

/**
 * How logs make room, for both adapters, so that they cannot differ.
 *
 * @returns the newest whole lines, at most so many bytes of them
 */
export const newestOf = (text: Buffer, bytes: number): Buffer => {
  if (text.length <= bytes) return text;
  const cut = text.length - bytes;
  // A cut right after an end of line leaves a whole line.
  if (text[cut - 1] === NEWLINE) return text.subarray(cut);
  const end = text.indexOf(NEWLINE, cut);
  return end === -1 ? Buffer.alloc(0) : text.subarray(end + 1);
};
