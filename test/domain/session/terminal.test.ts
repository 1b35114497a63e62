import { describe, expect, it } from "vitest";
import { terminalSize, terminalWish } from "../../../src/domain/session/terminal.ts";

const ID = "0199aaaa-0000-7000-8000-000000000001";
const wish = (query: string) => terminalWish(new URLSearchParams(query));

describe("a wish for a terminal", () => {
  it("has a size and a command, or neither", () => {
    expect(wish(`id=${ID}`)).toEqual({ id: ID, size: null, command: [], after: null });
    expect(wish(`id=${ID}&rows=24&cols=80&command=git&command=log%20-p&command=&after=12`)).toEqual({
      id: ID,
      size: { rows: 24, cols: 80 },
      command: ["git", "log -p", ""],
      after: 12,
    });
  });

  it.each([
    ["", "id"],
    ["id=../../etc", "id"],
    [`id=${ID.toUpperCase()}`, "id"],
    [`id=${ID}&after=-1`, "after"],
    [`id=${ID}&after=1e9`, "after"],
    [`id=${ID}&after=9999999999999999`, "after"],
    [`id=${ID}&rows=24`, "rows"],
    [`id=${ID}&rows=0&cols=80`, "rows"],
    [`id=${ID}&rows=24&cols=1001`, "rows"],
    [`id=${ID}&command=`, "command"],
    [`id=${ID}&command=a%00b`, "command"],
    [`id=${ID}&${"command=a&".repeat(257)}`, "command"],
  ])("is refused by its field: %s", (query, path) => {
    expect(wish(query)).toEqual({ path, message: expect.stringMatching(/^must /) });
  });
});

it("takes whole sizes of a screen only", () => {
  expect(terminalSize(1, 1000)).toEqual({ rows: 1, cols: 1000 });
  expect([terminalSize(1.5, 10), terminalSize(10, Number.NaN), terminalSize(-1, 10)]).toEqual([
    null,
    null,
    null,
  ]);
});
