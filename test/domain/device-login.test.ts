import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { readCode, shownCode, userCode } from "../../src/domain/device-login.ts";

describe("the code of a device login", () => {
  it("is eight letters that make no word, each as likely as the others", () => {
    const counts = new Map<string, number>();
    for (let made = 0; made < 5000; made += 1)
      for (const letter of userCode(randomBytes(16))) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    expect([...counts.keys()].toSorted().join("")).toBe("BCDFGHJKLMNPQRSTVWXZ");
    // 40,000 letters of 20 kinds: 2000 each, and six standard deviations are 262.
    for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(262);
  });

  it("is read in any case and with any separator", () => {
    const code = userCode(randomBytes(16));
    for (const typed of [code, shownCode(code), shownCode(code).toLowerCase(), ` ${[...code].join(" ")} `])
      expect(readCode(typed)).toBe(code);
  });

  it.each(["", "BCDF", "BCDF-GHJKL", "AEIO-UAEI", "BCDF-GHJ1", "BCDF/GHJK", "ＢCDF-GHJK"])(
    "is not %j",
    (typed) => {
      expect(readCode(typed)).toBe(null);
    },
  );
});
