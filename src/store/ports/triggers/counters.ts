/**
 * Compares an account's counters with the rows that they count (journal.ts, D3). Counters and rows move in one
 * transaction, so they agree at every commit. A counter that does not was changed by hand, or by a backup that was
 * restored in part.
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

/** The counter's value, and the counted rows. */
export interface Mended {
  readonly said: number;
  readonly counted: number;
}

export class Counters extends Context.Service<
  Counters,
  {
    /** Accounts whose counters differ from their live sessions or their waiting fires, at one instant. */
    readonly wrong: Stored<readonly string[]>;
    /**
     * Counts again under the account's lock, which serialises it with admissions, drains and the ends of sessions, and
     * corrects a difference. @returns null if they agree; then nothing is written.
     */
    readonly mend: (
      accountId: string,
    ) => Stored<{ readonly activeSessions: Mended; readonly queuedFires: Mended } | null>;
  }
>()("platform/store/Counters") {}
