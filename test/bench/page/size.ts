/** How large the page is for a new reader: each of its files as the service sends it. */
import path from "node:path";
import { readPage } from "../../../src/http/pages/page-files.ts";

const DASHBOARD = path.join(import.meta.dirname, "../../../dashboard");

export const SIZE_MAX_KB = 150;

export interface PageSize {
  readonly files: number;
  /** Kilobytes of 1,000 bytes. */
  readonly plainKb: number;
  readonly gzippedKb: number;
}

const kilobytes = (parts: readonly Uint8Array[]): number =>
  Math.round(parts.reduce((all, { length }) => all + length, 0) / 100) / 10;

export const pageSize = async (): Promise<PageSize> => {
  const files = await readPage(DASHBOARD);
  return {
    files: files.length,
    plainKb: kilobytes(files.map(({ plain }) => plain)),
    gzippedKb: kilobytes(files.map(({ gzipped }) => gzipped)),
  };
};
