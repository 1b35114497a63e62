/** Words of a command line that become parts of a path. They are checked first, and errors never repeat them. */
import { parseUuid } from "../domain/ids.ts";
import { usageFailure } from "./failure.ts";

/** How many digits stand for an id. */
export const SHORT_DIGITS = 8;

/** The kinds of ids that commands ask for, by the word in their usage. Where one of these stands, a person may write the last digits. */
export const ID_KINDS = [
  "PROJECT",
  "PERSON",
  "ACTOR",
  "SESSION",
  "SAVE",
  "TURN",
  "REQUEST",
  "COMMENT",
  "INVITATION",
  "TOKEN",
  "FIRE",
  "BUILD",
  "CALL",
  "WEBHOOK",
  "DELIVERY",
] as const;
export type IdKind = (typeof ID_KINDS)[number];

const KINDS: ReadonlySet<string> = new Set(ID_KINDS);

export const isIdKind = (word: string): word is IdKind => KINDS.has(word);

/** The end of an id, as lists show it. */
export const shortId = (text: string): string => text.slice(-SHORT_DIGITS);

const id = (text: string, what: string): string => {
  const parsed = parseUuid(text.trim().toLowerCase());
  if (parsed === null) throw usageFailure(`${what} must be an id of 36 characters, such as 0190f3b2-….`);
  return parsed;
};

export const projectId = (text: string, what = "PROJECT"): string => id(text, what);
export const sessionId = (text: string): string => id(text, "SESSION");
export const anyId = (text: string, what = "ID"): string => id(text, what);

/** A number of 1 or more in plain decimal. */
export const count = (text: string, what: string): number => {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw usageFailure(`${what} must be a number of 1 or more.`);
  return Number(text);
};

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A duration such as 90s, 30m, 24h or 7d, in ms. */
export const duration = (text: string, what: string): number => {
  const [, amount = "", unit = ""] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  if (amount === "") throw usageFailure(`${what} must be a duration such as 90s, 30m, 24h or 7d.`);
  return Number(amount) * UNITS[unit as keyof typeof UNITS];
};

/** A slug or the name of a secret. `.` and `..` would change the path. */
export const segment = (text: string, what: string): string => {
  if (text === "" || text === "." || text === "..") throw usageFailure(`${what} must be a name.`);
  return text;
};

/** One of a few words. */
export const parseWord = <const Words extends readonly string[]>(
  text: string | undefined,
  words: Words,
  what: string,
): Words[number] | undefined => {
  if (text === undefined) return undefined;
  const match = words.find((word) => word === text);
  if (match === undefined) throw usageFailure(`${what} must be one of ${words.join(", ")}.`);
  return match;
};
