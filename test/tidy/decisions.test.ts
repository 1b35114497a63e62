/** Each decision has the same four parts, and the index lists it. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const FOLDER = path.join(import.meta.dirname, "..", "..", "docs", "decisions");
const PARTS = ["Context", "Decision", "Figures", "Consequences"];

const DECISIONS = readdirSync(FOLDER).filter((file) => /^\d{4}-/.test(file));
const read = (file: string): string => readFileSync(path.join(FOLDER, file), "utf8");

const partsOf = (file: string): readonly string[] =>
  [...read(file).matchAll(/^## (.+)$/gm)].map(([, part = ""]) => part).filter((part) => PARTS.includes(part));

test("has the context, the decision, the figures and the consequences in each file, in this order", () => {
  expect(DECISIONS.length).toBeGreaterThan(30);
  const wrong = DECISIONS.filter((file) => partsOf(file).join() !== PARTS.join());
  expect(wrong).toEqual([]);
});

test("lists each decision in the index once", () => {
  const listed = [...read("README.md").matchAll(/^- \[.+\]\((\d{4}-[^)]+)\)$/gm)].map(
    ([, file = ""]) => file,
  );
  expect(listed.toSorted()).toEqual(DECISIONS.toSorted());
});
