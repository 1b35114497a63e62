/** Numbers of things are said by `counted`, so that no page says "1 sessions". */
import { expect, it } from "vitest";
import { files, read } from "../support/documents.ts";

const NOUNS =
  "attempts|branches|bytes|calls|commits|connectors|crashes|deliveries|entries|events|failures|files|hours|images|items|keys|" +
  "lines|messages|migrations|minutes|models|nodes|packages|paths|people|projects|repositories|requests|rows|runs|sandboxes|" +
  "searches|secrets|seconds|sessions|steps|times|tokens|tools|tries|triggers|turns";
/** A variable before a plural. A constant in capitals is more than one, and `grouped` is for numbers that are large. */
const UNCOUNTED = new RegExp(String.raw`\$\{(?:[a-z]\w*\.)*[a-z]\w*\} (?:${NOUNS})\b`);

it("puts no variable before a plural, in the words of the command line and of the page", () => {
  const sources = files("src/cli/*.ts", "src/features/*/commands.ts", "dashboard/*.ts", "dashboard/*.tsx");
  expect(sources.length).toBeGreaterThan(200);
  const found = sources.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, index) => (UNCOUNTED.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});
