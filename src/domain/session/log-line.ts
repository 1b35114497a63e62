/**
 * The lines of a sandbox's log: as its daemon writes them, one numbered JSON object each, and as readers get them. A
 * line in another form comes from another program (PID 1, Node itself). Its place follows from the numbered line before
 * it.
 *
 *  O1 A line has the same place in its sandbox's log wherever it is read: in the provider's record, from the daemon, in
 *     the kept log. Readers resume by it.
 *  O2 A program's output never acts as markup or as a command where it is shown: control characters become visible
 *     signs.
 */
import { parseRecord } from "../../ground/record.ts";
import { quantity } from "../counted.ts";

/** A line's place in the log of one sandbox. */
export interface LinePlace {
  /** The daemon's number of the line, or of the last numbered line before it; from 1. */
  readonly seq: number;
  /** 0 for a numbered line; otherwise its count after that line. */
  readonly sub: number;
}

/** The line's author: the daemon, the agent runtime, the project's setup command, or something else in the sandbox. */
export type LogSource = "daemon" | "runtime" | "setup" | "sandbox";

export interface LogLine extends LinePlace {
  /** ISO 8601. A line without a time has that of the line before it; null before the first. */
  readonly at: string | null;
  readonly source: LogSource;
  readonly line: string;
}

/** The place before every line. */
export const BEGINNING: LinePlace = { seq: 0, sub: 0 };

export const isAfter = (line: LinePlace, place: LinePlace): boolean =>
  line.seq > place.seq || (line.seq === place.seq && line.sub > place.sub);

/** Whether numbered lines are missing between a place and the next line read. */
export const leavesGap = (place: LinePlace, next: LinePlace): boolean =>
  next.seq > place.seq + (next.sub === 0 ? 1 : 0);

interface Entry {
  readonly seq: number | null;
  readonly at: string;
  readonly source: LogSource;
  readonly line: string;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * A log as text.
 *
 * @param text whole lines in the order in which they were written; some lines may occur twice
 */
export const readLog = (text: string): readonly LogLine[] => {
  const lines: LogLine[] = [];
  let place = BEGINNING;
  let at: string | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const entry = parseEntry(line);
    if (entry !== null && entry.seq !== null) {
      if (entry.seq <= place.seq) continue;
      place = { seq: entry.seq, sub: 0 };
    } else {
      place = { seq: place.seq, sub: place.sub + 1 };
    }
    at = entry?.at ?? at;
    lines.push({ ...place, at, source: entry?.source ?? "sandbox", line: entry?.line ?? harmless(line) });
  }
  return lines;
};

/** One line as the daemon writes it. Null for anything else. */
export const readLine = (line: string): LogLine | null => {
  const entry = parseEntry(line);
  if (entry === null || entry.seq === null) return null;
  return { seq: entry.seq, sub: 0, at: entry.at, source: entry.source, line: entry.line };
};

/** A line of a log as text: `<iso time> <source> <line>`. */
export const writeLine = ({ at, source, line }: LogLine): string => `${at ?? "-"} ${source} ${line}\n`;

/** The line of a text log that says that numbered lines are missing before `next`. */
export const writeGap = (place: LinePlace, { at, seq, sub }: LogLine): string => {
  const missing = seq - place.seq - (sub === 0 ? 1 : 0);
  return writeLine({
    seq,
    sub,
    at,
    source: "sandbox",
    line: `[${quantity(missing, "line is", "lines are")} missing here]`,
  });
};

const parseEntry = (text: string): Entry | null => {
  if (!text.startsWith("{")) return null;
  const entry = parseRecord(text);
  if (entry === null) return null;
  const { seq, at, event, source, line, ...fields } = entry;
  if (typeof at !== "string" || !INSTANT.test(at) || typeof event !== "string") return null;
  const number = typeof seq === "number" && Number.isSafeInteger(seq) && seq > 0 ? seq : null;
  if (event === "output" && (source === "runtime" || source === "setup") && typeof line === "string") {
    return { seq: number, at, source, line: harmless(line) };
  }
  const particulars = Object.entries(fields).map(([name, value]) => ` ${name}=${particular(value)}`);
  return { seq: number, at, source: "daemon", line: harmless(`${event}${particulars.join("")}`) };
};

const particular = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Replaces control characters, except tabs, by visible signs, so that a terminal executes nothing in the text. */
const harmless = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- these characters are what it is about
  text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/gu, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
