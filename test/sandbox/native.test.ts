import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ARCHITECTURES, compile, compilerOf, digest, recorded, sourcesDigest } from "../../scripts/native.ts";
import { NATIVE_PROGRAMS, nativeProgram } from "../../src/sandbox/native/programs.ts";

const FOLDER = path.join(import.meta.dirname, "../../src/sandbox/native");
const LINES_MAX = 100;

describe("the native programs", () => {
  const record = recorded();

  it("are compiled from the sources as they are (else: npm run build:native)", () => {
    expect(record.sources).toBe(sourcesDigest());
  });

  it("have sources of at most 100 lines", () => {
    const sources = readdirSync(FOLDER).filter((name) => /\.[ch]$/.test(name));
    const long = sources.filter(
      (name) => readFileSync(path.join(FOLDER, name), "utf8").split("\n").length - 1 > LINES_MAX,
    );
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
    for (const program of NATIVE_PROGRAMS) {
      const bytes = nativeProgram(program, architecture);
      expect(record[architecture].programs[program]).toBe(digest(bytes));
      if (isHere) expect(digest(compile(program, architecture))).toBe(digest(bytes));
    }
  });
});
