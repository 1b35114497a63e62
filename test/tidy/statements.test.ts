/** Statements of the store have names: `noun.operation`, where the noun is the file. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { files, read } from "../support/documents.ts";

const NAMED = /\btoStored\(\s*"([^"]+)"/g;
/** The question whether the database answers, in the file that opens the store. */
const PING = "health.ping";

const camel = (name: string): string => name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());

const names = [...files("src/store/postgres/*.ts"), ...files("src/features/*/sql/*.ts")].flatMap((file) =>
  [...read(file).matchAll(NAMED)].map(([, name = ""]) => ({ file, name })),
);

describe("the name of a statement", () => {
  it("begins with the noun of its file", () => {
    expect(names.length).toBeGreaterThan(90);
    const astray = names.filter(
      ({ file, name }) => name !== PING && camel(path.basename(file, ".ts")) !== name.split(".")[0],
    );
    expect(astray).toEqual([]);
  });

  it("is used once", () => {
    const all = names.map(({ name }) => name);
    expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
  });
});
