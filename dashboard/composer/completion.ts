/**
 * What a composer offers while one types: after `/` the commands of the agent's runtime, after `@` the files of the project. It
 * uses no document.
 */
import { grouped } from "../elements/format.ts";

/** How many rows are offered. The menu shows eight of them at a time. */
export const ROWS_MAX = 50;

/** The word before the caret, if it begins with a sign. */
interface Token {
  readonly sign: "/" | "@";
  /** Where the sign is in the text. */
  readonly begin: number;
  /** The text after the sign. */
  readonly typed: string;
}

/** `/` counts at the beginning of the text alone, and nothing counts within a word. */
export const tokenAt = (text: string, caret: number): Token | null => {
  if (/^\S/.test(text.slice(caret))) return null;
  const [word = ""] = /\S*$/.exec(text.slice(0, caret)) ?? [];
  const begin = caret - word.length;
  const [sign] = word;
  const counts = sign === "@" || (sign === "/" && begin === 0);
  return counts ? { sign, begin, typed: word.slice(1) } : null;
};

export interface Row {
  /** It replaces the token in the text. */
  readonly writes: string;
  readonly name: string;
  readonly about: string;
  /** Whether one types on within the word, as in a folder. */
  readonly goesOn: boolean;
}

export interface Offer {
  readonly label: "Commands" | "Files";
  readonly rows: readonly Row[];
  /** A sentence about the rows, or the reason for an empty list. */
  readonly note: string | null;
}

/** The text after a row is taken, and where the caret is then. */
export const taken = (text: string, { begin, typed }: Token, { writes, goesOn }: Row) => {
  const after = text.slice(begin + 1 + typed.length);
  const written = goesOn ? writes : `${writes} `;
  return {
    text: text.slice(0, begin) + written + (goesOn ? after : after.replace(/^ /, "")),
    caret: begin + written.length,
  };
};

interface Command {
  readonly name: string;
  readonly description: string | null;
}

/** Something that was asked for. No value: it is awaited, or there is a reason. */
export interface Known<A> {
  readonly value: A | null;
  readonly problem: string | null;
}

const waiting = (label: Offer["label"], { problem }: Known<unknown>): Offer => ({
  label,
  rows: [],
  note: problem === null || problem === "" ? `Looking for ${label.toLowerCase()}…` : problem,
});

/** The commands that a repository has for a runtime, before one runs that could name them. @param files `command_files` of the runtime */
export const commandsIn = (
  { value, problem }: Known<Listing>,
  files: string | null,
): Known<readonly Command[]> => {
  if (files === null) return { value: [], problem };
  if (value === null) return { value, problem };
  const form = new RegExp(files);
  const commands = value.entries.flatMap(({ path }) => {
    const [, name] = form.exec(path) ?? [];
    return name === undefined ? [] : [{ name, description: path }];
  });
  return { value: commands, problem };
};

/** Null if nothing fits. Those that begin with what is typed come first. */
export const offeredCommands = (known: Known<readonly Command[]>, typed: string): Offer | null => {
  if (known.value === null) return waiting("Commands", known);
  const wanted = typed.toLowerCase();
  const fitting = known.value.filter(({ name }) => name.toLowerCase().includes(wanted));
  const begins = ({ name }: Command) => name.toLowerCase().startsWith(wanted);
  const sorted = [...fitting.filter(begins), ...fitting.filter((one) => !begins(one))];
  const rows = sorted.slice(0, ROWS_MAX).map(({ name, description }) => ({
    writes: `/${name}`,
    name: `/${name}`,
    about: description ?? "",
    goesOn: false,
  }));
  return rows.length === 0 ? null : { label: "Commands", rows, note: null };
};

/** A file or a folder. The path of a folder ends with `/`. */
interface Entry {
  readonly path: string;
  readonly lower: string;
}

export interface Listing {
  /** Folders first, short paths before long ones. */
  readonly entries: readonly Entry[];
  /** How many files are known. */
  readonly known: number;
  /** How many files there are. */
  readonly total: number;
}

const byLength = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : Number(a > b));

/** @param paths of files @param total how many files there are, if the paths are not all of them */
export const listingOf = (paths: readonly string[], total = paths.length): Listing => {
  const folders = new Set<string>();
  for (const path of paths)
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      const folder = path.slice(0, at + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  const sorted = [...[...folders].toSorted(byLength), ...paths.toSorted(byLength)];
  const entries = sorted.map((path) => ({ path, lower: path.toLowerCase() }));
  return { entries, known: paths.length, total };
};

const hasInOrder = (text: string, letters: string): boolean => {
  let at = -1;
  for (const letter of letters) {
    at = text.indexOf(letter, at + 1);
    if (at === -1) return false;
  }
  return true;
};

/** How many ranks there are. */
const RANKS = 5;

/** How well it fits, 0 best. Null: not at all. */
const rankOf = (lower: string, wanted: string): number | null => {
  const at = lower.indexOf(wanted);
  if (at === -1) return hasInOrder(lower, wanted) ? RANKS - 1 : null;
  // The name of a folder ends with `/`.
  const name = lower.lastIndexOf("/", lower.length - 2) + 1;
  if (lower.startsWith(wanted, name)) return 0;
  if (at === 0) return 1;
  return lower.includes(wanted, name) ? 2 : 3;
};

const bestOf = (entries: readonly Entry[], wanted: string): readonly Entry[] => {
  const ranks = Array.from({ length: RANKS }, (): Entry[] => []);
  for (const entry of entries) {
    const rank = rankOf(entry.lower, wanted);
    const same = rank === null ? undefined : ranks[rank];
    if (same !== undefined && same.length < ROWS_MAX) same.push(entry);
  }
  return ranks.flat().slice(0, ROWS_MAX);
};

const isChild = ({ lower }: Entry, folder: string): boolean =>
  lower.length > folder.length && lower.startsWith(folder) && !lower.slice(folder.length, -1).includes("/");

const childrenOf = (entries: readonly Entry[], folder: string): readonly Entry[] => {
  const children = entries.filter((entry) => isChild(entry, folder));
  const byPath = (a: Entry, b: Entry): number =>
    Number(b.path.endsWith("/")) - Number(a.path.endsWith("/")) || (a.lower < b.lower ? -1 : 1);
  return children.toSorted(byPath).slice(0, ROWS_MAX);
};

const fileRow = ({ path }: Entry, typed: string): Row => {
  const isFolder = path.endsWith("/");
  const begin = path.lastIndexOf("/", path.length - 2) + 1;
  const folder = path.slice(0, begin);
  const hasBlanks = /\s/.test(path);
  return {
    writes: hasBlanks ? `@"${path}"` : `@${path}`,
    name: path.slice(begin),
    about: folder.toLowerCase() === typed.toLowerCase() ? "" : folder,
    goesOn: isFolder && !hasBlanks,
  };
};

/** The files of the folder that is typed, or else those that fit best. Null: no file fits. */
export const offeredFiles = (known: Known<Listing>, typed: string): Offer | null => {
  if (known.value === null) return waiting("Files", known);
  const { entries, known: count, total } = known.value;
  const wanted = typed.toLowerCase();
  const children = wanted === "" || wanted.endsWith("/") ? childrenOf(entries, wanted) : [];
  const found = children.length > 0 ? children : bestOf(entries, wanted);
  if (found.length === 0) return null;
  const note =
    total > count ? `Only the first ${grouped(count)} of ${grouped(total)} files are searched.` : null;
  return { label: "Files", rows: found.map((entry) => fileRow(entry, typed)), note };
};
