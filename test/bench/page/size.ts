/** How large the page is for a new reader: each of its files as the service sends it. */
import path from "node:path";
import { type PageFile, readPage } from "../../../src/http/pages/page-files.ts";

const DASHBOARD = path.join(import.meta.dirname, "../../../dashboard");

/** Limits for the files that each reader loads, and for those that are loaded when their page is opened (decisions 0065, 0081). */
export const SIZE_MAX_KB = 135;
export const LATER_MAX_KB = 30;
/** The terminal, most of which is its library (decision 0087). */
export const TERMINAL_MAX_KB = 100;

export interface PageSize {
  readonly files: number;
  /** Kilobytes of 1,000 bytes. */
  readonly plainKb: number;
  readonly gzippedKb: number;
  /** Compressed, and not part of the other numbers. */
  readonly laterKb: number;
  /** The same of the terminal, which is not part of `laterKb`. */
  readonly terminalKb: number;
}

const kilobytes = (parts: readonly Uint8Array[]): number =>
  Math.round(parts.reduce((all, { length }) => all + length, 0) / 100) / 10;

/** Modules that only `import()` reaches. */
const lateModules = (files: readonly PageFile[]): ReadonlySet<string> => {
  const modules = new Map(
    files
      .filter(({ name }) => name.endsWith(".js"))
      .map(({ name, plain }) => [name, Buffer.from(plain).toString()]),
  );
  const early = new Set<string>();
  const reach = (name: string): void => {
    const source = modules.get(name);
    if (source === undefined || early.has(name)) return;
    early.add(name);
    for (const [, next = ""] of source.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) reach(next);
  };
  reach([...modules.keys()].find((name) => name.startsWith("app-")) ?? "");
  return new Set([...modules.keys()].filter((name) => !early.has(name)));
};

const isTerminal = ({ name }: PageFile): boolean => name.startsWith("terminal-");

export const pageSize = async (): Promise<PageSize> => {
  const files = await readPage(DASHBOARD);
  const late = lateModules(files);
  const first = files.filter(({ name }) => !late.has(name));
  const lateFiles = files.filter(({ name }) => late.has(name));
  return {
    files: first.length,
    plainKb: kilobytes(first.map(({ plain }) => plain)),
    gzippedKb: kilobytes(first.map(({ gzipped }) => gzipped)),
    laterKb: kilobytes(lateFiles.filter((file) => !isTerminal(file)).map(({ gzipped }) => gzipped)),
    terminalKb: kilobytes(lateFiles.filter(isTerminal).map(({ gzipped }) => gzipped)),
  };
};
