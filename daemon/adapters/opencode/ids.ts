/** Ids in opencode's own form: they begin with a time, so that they can be put in order. */

/** opencode's ids begin with the time: ms times this, plus a count of the ids within the ms. */
const COUNTS_A_MS = 0x1000n;
const TIME_BITS = 48;
const REST_LENGTH = 14;

/** Follows the time in the ids of records that the daemon has restored. By chance it has one id in 2 · 10^14. */
export const RESTORED = "restored";

export interface TimedId {
  /** ms since the epoch. */
  readonly ms: number;
  readonly count: number;
  /** Letters and digits. */
  readonly rest: string;
}

export const timedId = (prefix: "msg" | "prt" | "evt", { ms, count, rest }: TimedId): string => {
  const time = BigInt.asUintN(TIME_BITS, BigInt(Math.trunc(ms)) * COUNTS_A_MS + BigInt(count));
  return `${prefix}_${time.toString(16).padStart(TIME_BITS / 4, "0")}${rest.padEnd(REST_LENGTH, "0")}`;
};

/** The part of an id that rises with the time at which opencode made it. */
export const timeIn = (id: string): string => id.slice(id.indexOf("_") + 1, id.indexOf("_") + 13);

/**
 * The place of a record in the order in which opencode made its records. None: the id has another form.
 *
 * @param more how far behind the record
 */
export const itemOrder = (id: string, more = 0): { readonly order?: number } => {
  const time = timeIn(id);
  return /^[0-9a-f]{12}$/.test(time) ? { order: Number.parseInt(time, 16) + more } : {};
};

/** Whether the record is from a former sandbox. */
export const isRestored = (id: string): boolean => id.startsWith(RESTORED, id.indexOf("_") + 13);
