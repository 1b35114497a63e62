import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  crowdedOut,
  LOGINS_MAX,
  readCode,
  shownCode,
  userCode,
} from "../../../src/domain/person/device-login.ts";

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

const logins = (addresses: readonly (string | null)[]) =>
  addresses.map((address, index) => ({ id: String(index), address }));
const flood = (length: number, address: (index: number) => string) =>
  Array.from({ length }, (_, i) => address(i));

describe("one login more than there may be", () => {
  it("ends none while there is room", () => {
    expect(crowdedOut(logins(flood(LOGINS_MAX - 1, () => "192.0.2.1")))).toEqual([]);
  });

  it("ends the oldest of the address that has most, not the oldest of all", () => {
    const others = ["198.51.100.1", "198.51.100.2", null];
    expect(crowdedOut(logins([...others, ...flood(LOGINS_MAX - 2, () => "192.0.2.1")]))).toEqual(["3", "4"]);
  });

  it("takes all addresses of one IPv6 network for one", () => {
    const spread = flood(LOGINS_MAX - 2, (index) => `2001:db8::${index.toString(16)}`);
    expect(crowdedOut(logins(["192.0.2.1", "192.0.2.1", ...spread]))).toEqual(["2"]);
  });
});
