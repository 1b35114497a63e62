/** How large the page is for a new reader: each of its files as the service sends it (decision 0095). */
import path from "node:path";
import { type PageFile, readPage } from "../../../src/http/pages/page-files.ts";

const DASHBOARD = path.join(import.meta.dirname, "../../../dashboard");

/** Limits for the files that each reader loads, and for those that are loaded when their page is opened. */
export const SIZE_MAX_KB = 115;
/** With the first page of a person who is signed in. */
export const HOME_MAX_KB = 220;
export const LATER_MAX_KB = 102;
/** A session's conversation, beside what the first page loads. */
export const CONVERSATION_MAX_KB = 20;
/** The terminal, most of which is its library. */
export const TERMINAL_MAX_KB = 100;
/** What finds the colours of code, with the largest of the languages, of which each is loaded alone. */
export const COLOURS_MAX_KB = 90;
/** The page of a session, beside what it shares with others. */
export const SESSION_MAX_KB = 20;
/** The framework of the remade pages. */
export const REACT_MAX_KB = 85;

export interface PageSize {
  readonly files: number;
  /** Kilobytes of 1,000 bytes. */
  readonly plainKb: number;
  readonly gzippedKb: number;
  /** The same with the first page. */
  readonly homeKb: number;
  /** Compressed, and not part of the other numbers. */
  readonly laterKb: number;
  /** The same of a session's conversation, which is not part of `laterKb`. */
  readonly conversationKb: number;
  /** The same of the terminal, which is not part of `laterKb`. */
  readonly terminalKb: number;
  /** The same of the colours of code with the largest language, which is not part of `laterKb`. */
  readonly coloursKb: number;
  /** The same of a session's page. */
  readonly sessionKb: number;
  /** The same of React and what belongs to it, a part of `homeKb`. */
  readonly reactKb: number;
}

const kilobytes = (parts: readonly Uint8Array[]): number =>
  Math.round(parts.reduce((all, { length }) => all + length, 0) / 100) / 10;

/** The script of that name, and those that it imports. Others are reached by `import()`. */
const loadedWith = (name: string, files: readonly PageFile[]): ReadonlySet<string> => {
  const loaded = new Set<string>();
  const reach = (file: PageFile | undefined): void => {
    if (file === undefined || loaded.has(file.name)) return;
    loaded.add(file.name);
    const source = Buffer.from(file.plain).toString();
    for (const [, next] of source.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g))
      reach(files.find((one) => one.name === next));
  };
  reach(files.find((file) => file.name.startsWith(`${name}-`) && file.name.endsWith(".js")));
  return loaded;
};

const isTerminal = ({ name }: PageFile): boolean => name.startsWith("terminal-");
const isSession = ({ name }: PageFile): boolean => name.startsWith("sessions-");
const isColour = ({ name }: PageFile): boolean => name.startsWith("colour-");
const isLanguage = ({ name }: PageFile): boolean => name.startsWith("language-");
const isReact = ({ name }: PageFile): boolean => name.startsWith("react-");

export const pageSize = async (): Promise<PageSize> => {
  const files = await readPage(DASHBOARD);
  const [early, home, talk] = ["main", "home", "conversation"].map((name) => loadedWith(name, files));
  const isFirst = ({ name }: PageFile): boolean => early?.has(name) === true || !name.endsWith(".js");
  const isHome = (file: PageFile): boolean => isFirst(file) || home?.has(file.name) === true;
  const first = files.filter(isFirst);
  const lateFiles = files.filter((file) => !isHome(file));
  const isTalk = ({ name }: PageFile): boolean => talk?.has(name) === true;
  const coloured = files.filter(isLanguage).map(({ name }) => {
    const loaded = loadedWith(name.slice(0, name.lastIndexOf("-")), files);
    return files.filter((file) => isColour(file) || loaded.has(file.name));
  });
  return {
    files: first.length,
    plainKb: kilobytes(first.map(({ plain }) => plain)),
    gzippedKb: kilobytes(first.map(({ gzipped }) => gzipped)),
    homeKb: kilobytes(files.filter(isHome).map(({ gzipped }) => gzipped)),
    laterKb: kilobytes(
      lateFiles
        .filter((file) => ![isTerminal, isTalk, isSession, isColour, isLanguage].some((is) => is(file)))
        .map(({ gzipped }) => gzipped),
    ),
    conversationKb: kilobytes(lateFiles.filter(isTalk).map(({ gzipped }) => gzipped)),
    coloursKb: Math.max(...coloured.map((some) => kilobytes(some.map(({ gzipped }) => gzipped)))),
    sessionKb: kilobytes(lateFiles.filter(isSession).map(({ gzipped }) => gzipped)),
    terminalKb: kilobytes(lateFiles.filter(isTerminal).map(({ gzipped }) => gzipped)),
    reactKb: kilobytes(files.filter(isReact).map(({ gzipped }) => gzipped)),
  };
};
