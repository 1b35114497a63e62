/**
 * Output for people. Names, titles and messages are text from other people and agents. So characters that control a
 * terminal are written as escapes (`\x1b`), and so are those that change the direction of text.
 */
import { styleText } from "node:util";
import { parseUuid } from "../domain/ids.ts";
import { ACTIVITY_WORDS } from "../domain/session/activity-words.ts";
import { shortId } from "./words.ts";

/** Control characters, DEL among them, and the characters that change the direction of text; line and paragraph separators. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const escape = (character: string): string => {
  const code = character.charCodeAt(0);
  return code <= 0xff
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** One line. */
export const safeLine = (text: string): string => text.replaceAll(OBEYED, escape);

/** Several lines: line breaks and tabs stay. */
export const safeLines = (text: string): string =>
  text.replaceAll(OBEYED, (character) =>
    character === "\n" || character === "\t" ? character : escape(character),
  );

/** The same JSON document without terminal control characters: JSON itself does not escape those beyond ASCII. */
export const safeJson = (document: string): string =>
  document.replaceAll(OBEYED, (character) => {
    // Outside of strings, JSON contains only blanks of this kind. Inside, raw characters below a blank are invalid.
    if (character === "\n" || character === "\t" || character === "\r") return character;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });

/** Cells give an overview at a terminal. The single view, a pipe, a file and `--json` get the whole text. */
const CELL_MAX = 60;
/** The narrowest that a cell of words becomes in a narrow window. */
const CELL_MIN = 12;
/** Columns of paths, which may contain blanks. */
const PATHS: ReadonlySet<string> = new Set(["FILE", "BELONGED TO"]);
/** Columns of ids that other programs made or need: git knows a branch, and a sender its delivery, only by all of it. */
const WHOLE: ReadonlySet<string> = new Set(["BRANCH", "SENDER'S ID"]);

type Colour = "red" | "yellow" | "green" | "cyan" | "magenta" | "dim";

const OF_ACTIVITIES = {
  queued: "yellow",
  starting: "yellow",
  working: "green",
  needs_you: "magenta",
  ready_for_review: "cyan",
  resting: "dim",
  asleep: "dim",
  failed: "red",
  done: "dim",
} as const satisfies Readonly<Record<keyof typeof ACTIVITY_WORDS, Colour>>;

/** Of all other states: those of triggers, fires, change requests, calls, builds and deliveries. */
const OF_STATES: Readonly<Record<Colour, string>> = {
  red: "failed error denied refused interrupted lost",
  yellow: "queued pending building waiting changed unpinned",
  green: "running active on ready open approved fired delivered ok enabled",
  cyan: "calling",
  magenta: "merged",
  dim: "stopped completed closed archived cancelled expired off paused disabled finished done",
};

/** The colour of a state by its word. */
const COLOURS: ReadonlyMap<string, Colour> = new Map([
  ...Object.entries(OF_STATES).flatMap(([colour, words]) =>
    words.split(" ").map((word) => [word, colour as Colour] as const),
  ),
  ...Object.entries(OF_ACTIVITIES).map(
    ([activity, colour]) =>
      [ACTIVITY_WORDS[activity as keyof typeof OF_ACTIVITIES].word.toLowerCase(), colour] as const,
  ),
]);
/** Columns of states. */
const STATES: ReadonlySet<string> = new Set(["STATE", "STATUS", "OUTCOME", "RESULT"]);
/** What follows the word of a state. */
const AFTER_STATE = /[,(].*$/;

/** The text in one line: a title may be the first lines of a prompt. */
const inOneLine = (text: string): string => safeLine(text.replaceAll(/[\t\r\n]+/g, " "));

/** Shown in two cells of a terminal: scripts of East Asia, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}\u{20000}-\u{3fffd}]/u;
/** Shown with the character before. */
const JOINED = /\p{Mn}|\p{Me}|\p{Cf}/u;

/** Whether the character takes two cells of a terminal. */
export const isWide = (character: string): boolean => WIDE.test(character);

/** How many cells of a terminal a text takes. */
export const cellWidth = (text: string): number => {
  if (/^[ -~]*$/.test(text)) return text.length;
  let cells = 0;
  for (const character of text) cells += JOINED.test(character) ? 0 : isWide(character) ? 2 : 1;
  return cells;
};

/** A part of an address, an id or a path is of no use. So only words are cut. */
const isCut = (text: string, heading: string): boolean => text.includes(" ") && !PATHS.has(heading);

/** A text cut to a number of cells of a terminal. */
export const cutToWidth = (text: string, max: number): string => {
  if (cellWidth(text) <= max) return text;
  let [shown, cells] = ["", 1];
  for (const character of text) {
    cells += cellWidth(character);
    if (cells > max) break;
    shown += character;
  }
  return `${shown}…`;
};

const MINUTE_MS = 60_000;
const STEPS = [
  ["minute", MINUTE_MS, 60],
  ["hour", 60 * MINUTE_MS, 24],
  ["day", 24 * 60 * MINUTE_MS, 60],
] as const;
const INSTANT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d)Z$/;

/** An instant as `time` writes it, from now: `5 min. ago`. One of long ago or of far ahead stays a day. */
const fromNow = (text: string, now: number): string => {
  const [, day = "", hours = ""] = INSTANT.exec(text) ?? [];
  if (day === "") return text;
  const ms = Date.parse(`${day}T${hours}:00Z`) - now;
  const words = new Intl.RelativeTimeFormat("en", { style: "short", numeric: "auto" });
  for (const [unit, unitMs, most] of STEPS) {
    const count = Math.round(ms / unitMs);
    if (Math.abs(count) < most) return words.format(count, unit);
  }
  return day;
};

/** A terminal to which a command writes as it goes on. */
export interface Screen {
  /** Cells in a row, at present. */
  readonly columns: () => number;
  readonly hasColours: boolean;
  readonly write: (text: string) => void;
}

/** How a table is shown. Null for a pipe or a file, which gets all of it. */
export interface Window {
  /** Characters in a line. */
  readonly columns: number;
  readonly hasColours: boolean;
  /** Ids as their last digits, by which commands take them. */
  readonly hasShortIds: boolean;
  /** Ms since the epoch. */
  readonly now: number;
}

type Table = (headings: readonly string[], rows: readonly (readonly string[])[], none: string) => string;

const GAP = "  ";

const cellFor =
  (window: Window | null) =>
  (text: string, heading: string): string => {
    const whole = inOneLine(text);
    if (window === null) return whole;
    if (window.hasShortIds && !WHOLE.has(heading) && parseUuid(whole) !== null) return shortId(whole);
    const cell = fromNow(whole, window.now);
    return isCut(cell, heading) ? cutToWidth(cell, CELL_MAX) : cell;
  };

const chooseColour = (text: string, heading: string): Colour | undefined =>
  STATES.has(heading) ? COLOURS.get(text.toLowerCase().replace(AFTER_STATE, "").trim()) : undefined;

/** What stands below a row begins so far to the right. */
const BELOW = "  ";

interface Columns {
  readonly headings: readonly string[];
  readonly widths: readonly number[];
}

/**
 * A row in a window: its cells below their headings. Words in its last column are cut to the window. A cell that does not fit, such as
 * an address, stands below the row, with those after it.
 */
const fittedRow = (row: readonly string[], { headings, widths }: Columns, window: Window): string => {
  const lines = [""];
  let column = 0;
  for (const [index, cell] of row.entries()) {
    const isLast = index === row.length - 1;
    const heading = headings[index] ?? "";
    const room = window.columns - column;
    const hasRoom = cellWidth(cell) <= room || (isLast && isCut(cell, heading) && room >= CELL_MIN);
    if (!hasRoom && column > BELOW.length) {
      lines.push(BELOW);
      column = BELOW.length;
    }
    const text =
      isLast && isCut(cell, heading) ? cutToWidth(cell, Math.max(window.columns - column, CELL_MIN)) : cell;
    const colour = window.hasColours ? chooseColour(text, heading) : undefined;
    const colouredText = colour === undefined ? text : styleText(colour, text, { validateStream: false });
    const wide = lines.length > 1 ? cellWidth(text) : (widths[index] ?? 0);
    lines.push(`${lines.pop() ?? ""}${colouredText}${" ".repeat(Math.max(0, wide - cellWidth(text)))}${GAP}`);
    column += wide + GAP.length;
  }
  return lines.map((line) => line.trimEnd()).join("\n");
};

export const tableFor =
  (window: Window | null): Table =>
  (headings, rows, none) => {
    if (rows.length === 0) return none;
    const cell = cellFor(window);
    const lines = [
      headings,
      ...rows.map((row) => row.map((text, index) => cell(text, headings[index] ?? ""))),
    ];
    const widths = headings.map((_, index) => Math.max(...lines.map((line) => cellWidth(line[index] ?? ""))));
    if (window !== null) return lines.map((line) => fittedRow(line, { headings, widths }, window)).join("\n");
    const pad = (text: string, index: number): string =>
      text + " ".repeat((widths[index] ?? 0) - cellWidth(text));
    return lines.map((line) => line.map(pad).join(GAP).trimEnd()).join("\n");
  };

/** The cells in a row of a terminal that does not tell. */
export const DEFAULT_COLUMNS = 80;

const tableHere =
  (hasShortIds: boolean): Table =>
  (...parts) => {
    const { isTTY, columns = DEFAULT_COLUMNS } = process.stdout;
    const hasColours = isTTY && process.stdout.hasColors();
    return tableFor(
      isTTY ? { columns, hasColours, hasShortIds, now: performance.timeOrigin + performance.now() } : null,
    )(...parts);
  };

/** Rows below their headings, with columns as wide as their content. @param none the text if there are no rows */
export const table: Table = tableHere(true);

/** The same with whole ids, for commands that call no service and so take no parts of ids. */
export const localTable: Table = tableHere(false);

/** The fields of one record with their names, without those that are null. Further lines of a text stand below its first. */
export const fieldLines = (pairs: readonly (readonly [name: string, value: string | null])[]): string => {
  const filledPairs = pairs.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  const widest = Math.max(...filledPairs.map(([name]) => name.length));
  const below = `\n${" ".repeat(widest + 2)}`;
  const lines = (value: string): string => value.trimEnd().split(/\r?\n/).map(safeLine).join(below);
  return filledPairs.map(([name, value]) => `${name.padEnd(widest)}  ${lines(value)}`).join("\n");
};

/** An instant from the API, to the second: whether a change is in a save depends on it. */
export const timeToSecond = (instant: string): string => `${instant.slice(0, 19).replace("T", " ")}Z`;
/** To the minute. */
export const time = (instant: string): string => `${instant.slice(0, 16).replace("T", " ")}Z`;
export const timeOrDash = (instant: string | null): string => (instant === null ? "-" : time(instant));

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
/** A size, rounded up, so that only nothing is 0. */
export const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MiB`;
