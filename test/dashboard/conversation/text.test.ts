import { describe, expect, it } from "vitest";
import { inZone, moment } from "../../../dashboard/elements/format.ts";
import { visible } from "../../../dashboard/elements/text.ts";

describe("text of other authors", () => {
  it("shows the marks that a letter has beyond 16 by their numbers [P09]", () => {
    const marks = "\u0301".repeat(16);
    expect(visible(`a${marks}\u0301\u{1e000}b${marks}`)).toBe(`a${marks}[U+0301][U+1E000]b${marks}`);
    expect(visible(`a${"\u0301".repeat(250_000)}`)).toBe(`a${marks}${"[U+0301]".repeat(249_984)}`);
  });

  it("keeps the marks that languages use", () => {
    const words =
      "\u0e17\u0e35\u0e48 \u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u0596\u05d9\u05ea \u0f66\u0f90\u0fb2\u0f74\u0f56 e\u0301";
    expect(visible(words)).toBe(words);
  });
});

it("a sentence of the service has its instants as the page shows them", () => {
  const at = "2026-11-30T01:09:52.857Z";
  expect(inZone(`Saved at ${at}: 3 files. Before, ${at}.`)).toBe(
    `Saved at ${moment(at)}: 3 files. Before, ${moment(at)}.`,
  );
});

it("a line of a log has its time in the reader's zone", async () => {
  const before = process.env["TZ"];
  process.env["TZ"] = "Asia/Kolkata";
  // A module of its own: formats keep the zone in which they were made.
  const module = "../../../dashboard/elements/format.ts?zone=Asia/Kolkata";
  const { logClock }: { readonly logClock: (at: string) => string } = await import(module);
  if (before === undefined) delete process.env["TZ"];
  else process.env["TZ"] = before;
  expect(logClock("2026-11-30T20:09:52.857Z")).toBe("01:39:52.857");
});
