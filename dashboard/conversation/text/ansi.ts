/**
 * Reads what a program wrote to a terminal. It uses no document.
 *
 *  A1 Colours and styles become looks by name, which the style sheet draws with enough contrast in each colour scheme: no
 *     output can hide its text. 256 and 16 million colours become the nearest of these.
 *  A2 A carriage return and a backspace write over the line, as a progress bar does. All other sequences are dropped.
 *  A3 Every other character stays, so that what makes text visible sees it.
 */

/** Characters of one look: names of classes, or "". */
export interface Piece {
  readonly text: string;
  readonly look: string;
}

export type TerminalLine = readonly Piece[];

interface Style {
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly inverse: boolean;
  /** The name of a colour, or "" for the reader's own. */
  readonly text: string;
  readonly ground: string;
}

const PLAIN: Style = {
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  text: "",
  ground: "",
};

/* eslint-disable no-control-regex -- these are what it reads */
/** Control sequences, strings of the terminal such as titles and links, and two-character sequences. */
const SEQUENCE =
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\`-~]/g;
/* eslint-enable no-control-regex */

/** Black and white are the reader's own: neither is readable in both colour schemes. */
const NAMES = ["", "red", "green", "yellow", "blue", "magenta", "cyan", ""];

/** Below this difference of its parts, of 255, a colour is a grey. */
const GREY = 48;
const HUES: readonly (readonly [below: number, name: string])[] = [
  [20, "red"],
  [70, "yellow"],
  [165, "green"],
  [200, "cyan"],
  [265, "blue"],
  [335, "magenta"],
  [361, "red"],
];

const greyName = (level: number): string => (level > 70 && level < 190 ? "grey" : "");

const nearest = (red: number, green: number, blue: number): string => {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  const span = most - least;
  if (span < GREY) return greyName(most);
  const turn =
    most === red
      ? (green - blue) / span
      : most === green
        ? 2 + (blue - red) / span
        : 4 + (red - green) / span;
  const hue = (turn * 60 + 360) % 360;
  return HUES.find(([below]) => hue < below)?.[1] ?? "";
};

/** One of the six levels of the 256 colours' cube. */
const level = (step: number): number => (step === 0 ? 0 : 55 + step * 40);

const indexed = (index: number): string => {
  if (index === 8) return "grey";
  if (index < 16) return NAMES[index % 8] ?? "";
  if (index > 231) return greyName(8 + (index - 232) * 10);
  const at = index - 16;
  return nearest(level(Math.floor(at / 36)), level(Math.floor(at / 6) % 6), level(at % 6));
};

/** The colour after 38 or 48, and how many numbers it took. */
const extended = ([kind, ...rest]: readonly number[]): readonly [name: string, taken: number] => {
  if (kind === 5) return [indexed(rest[0] ?? 0), 2];
  if (kind === 2) return [nearest(rest[0] ?? 0, rest[1] ?? 0, rest[2] ?? 0), 4];
  return ["", 1];
};

const SWITCHES: Readonly<Record<number, Partial<Style>>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { text: "" },
  49: { ground: "" },
  90: { text: "grey" },
  100: { ground: "grey" },
};

const coloured = (code: number): Partial<Style> => {
  const name = NAMES[code % 10] ?? "";
  if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) return { text: name };
  return (code >= 40 && code < 48) || (code >= 100 && code < 108) ? { ground: name } : {};
};

const styled = (style: Style, parameters: string): Style => {
  const codes = parameters.split(/[;:]/).map(Number);
  let next = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      const [name, taken] = extended(codes.slice(at + 1));
      next = Object.assign({}, next, code === 38 ? { text: name } : { ground: name });
      at += taken;
    } else next = code === 0 ? PLAIN : Object.assign({}, next, SWITCHES[code] ?? coloured(code));
  }
  return next;
};

const lookOf = ({ bold, dim, italic, underline, inverse, text, ground }: Style): string => {
  const back = inverse ? text || "ink" : ground;
  return [
    bold && "bold",
    dim && "dim",
    italic && "italic",
    underline && "underline",
    // On a ground, the text has the paper's colour.
    back === "" ? text !== "" && `text-${text}` : `ground-${back}`,
  ]
    .filter(Boolean)
    .join(" ");
};

/** A line while it is written. */
interface Cells {
  readonly cells: (readonly [character: string, look: string])[];
  at: number;
}

const piecesOf = ({ cells }: Cells): TerminalLine => {
  const pieces: { text: string; look: string }[] = [];
  for (const [character, look] of cells) {
    const last = pieces.at(-1);
    if (last?.look === look) last.text += character;
    else pieces.push({ text: character, look });
  }
  return pieces;
};

const write = (line: Cells, text: string, look: string): void => {
  for (const character of text) {
    if (character === "\r") line.at = 0;
    else if (character === "\b") line.at = Math.max(0, line.at - 1);
    else {
      line.cells[line.at] = [character, look];
      line.at += 1;
    }
  }
};

/** Erases a part of the line: to its end, to its beginning, or all of it. */
const erase = ({ cells, at }: Cells, part: string): void => {
  if (part === "" || part === "0") {
    cells.length = Math.min(cells.length, at);
    return;
  }
  const end = part === "1" ? Math.min(at + 1, cells.length) : cells.length;
  for (let index = 0; index < end; index += 1) cells[index] = [" ", ""];
};

/** @returns its lines, without an empty one at the end */
export const readTerminal = (output: string): readonly TerminalLine[] => {
  const lines: TerminalLine[] = [];
  let line: Cells = { cells: [], at: 0 };
  let style = PLAIN;
  const put = (text: string): void => {
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) {
        lines.push(piecesOf(line));
        line = { cells: [], at: 0 };
      }
      write(line, part, lookOf(style));
    }
  };
  let from = 0;
  for (const sequence of output.matchAll(SEQUENCE)) {
    put(output.slice(from, sequence.index));
    from = sequence.index + sequence[0].length;
    const [, parameters = "", final = ""] = sequence;
    if (final === "m") style = styled(style, parameters);
    if (final === "K") erase(line, parameters);
  }
  put(output.slice(from));
  if (line.cells.length > 0) lines.push(piecesOf(line));
  return lines;
};
