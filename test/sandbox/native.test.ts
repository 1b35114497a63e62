import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  ARCHITECTURES,
  builtPath,
  compile,
  compilerOf,
  digest,
  recorded,
  sourceFiles,
  sourcesDigest,
  SOURCES,
} from "../../scripts/native.ts";

const LINES_MAX = 100;

describe("the native programs", () => {
  const record = recorded();

  it("are compiled from the sources as they are (else: npm run build:native)", () => {
    expect(record.sources).toBe(sourcesDigest());
  });

  it("have sources of at most 100 lines", () => {
    const sources = sourceFiles();
    const long = sources.filter(({ text }) => text.split("\n").length - 1 > LINES_MAX);
    expect([sources.length > 0, long]).toEqual([true, []]);
  });

  const cases = ARCHITECTURES.map((architecture) => {
    const { compiler } = record[architecture];
    const isHere = compilerOf(architecture) === compiler;
    const name = isHere
      ? `are what ${compiler} makes`
      : `have their digests (not compared with ${compiler}, which is not installed here)`;
    return { architecture, isHere, name };
  });

  it.each(cases)("$name ($architecture)", ({ architecture, isHere }) => {
    for (const source of SOURCES) {
      const bytes = readFileSync(builtPath(source, architecture));
      expect(record[architecture].programs[source.name]).toBe(digest(bytes));
      if (isHere) expect(digest(compile(source, architecture))).toBe(digest(bytes));
    }
  });
});
