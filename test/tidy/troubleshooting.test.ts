import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { ADVICE } from "../../src/domain/session/failure.ts";
import { MODEL_ERRORS } from "../../src/domain/session/model-errors.ts";

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, "../..", file), "utf8");
const PAGE = read("docs/operate/troubleshooting.md");

/** Codes in the source that a person can meet: the first group of each match. */
const codes = (file: string, pattern: RegExp): readonly string[] =>
  [...read(file).matchAll(pattern)].map(([, code = ""]) => code);

test("troubleshooting names each code of a failed session", () => {
  expect(Object.keys(ADVICE).filter((code) => !PAGE.includes(`| \`${code}\``))).toEqual([]);
});

test("troubleshooting names each code of a failed turn", () => {
  const file = "daemon/adapters/turn-errors.ts";
  const told = [...codes(file, /code: "([a-z_]+)"/g), ...codes(file, /^ {2}([a-z]+_[a-z_]+):/gm)];
  expect(told).toContain("turn_failed");
  const found = [...told, ...Object.keys(MODEL_ERRORS)];
  expect(found.filter((code) => !PAGE.includes(`\`${code}\``))).toEqual([]);
});

test("troubleshooting names each answer and each reason of a refused webhook", () => {
  const file = "src/http/webhooks/webhook-answers.ts";
  const found = [...codes(file, /code: "([a-z_]+)"/g), ...codes(file, /(?:return|reason:|\?) "([a-z_]+)"/g)];
  expect(found).toContain("triggers_paused");
  // The one answer to all reasons for which nothing listens.
  const unnamed = found.filter((code) => !["not_found", "invalid_signature"].includes(code));
  expect(unnamed.filter((code) => !PAGE.includes(`\`${code}\``))).toEqual([]);
});
