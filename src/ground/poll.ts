import { setTimeout as pause } from "node:timers/promises";

interface PollLimits {
  /** The pause between two looks, ms. */
  readonly everyMs: number;
  /** How long the pauses are together, ms. A busy host takes longer and looks as often. */
  readonly withinMs: number;
}

/**
 * Looks at something that gives no signal, again and again, until the look returns more than null or false.
 * @returns what it saw. Null if nothing came in time.
 */
export const poll = async <Seen>(
  look: () => Seen | Promise<Seen>,
  { everyMs, withinMs }: PollLimits,
): Promise<Exclude<Seen, false | null> | null> => {
  for (let waitedMs = 0; ; waitedMs += everyMs) {
    // eslint-disable-next-line no-await-in-loop -- one look after the other
    const result = await look();
    if (result !== null && result !== false) return result as Exclude<Seen, false | null>;
    if (waitedMs >= withinMs) return null;
    // eslint-disable-next-line no-await-in-loop -- a pause
    await pause(everyMs);
  }
};
