import { describe, expect, it } from "vitest";
import {
  databaseUid,
  mapHasUids,
  sandboxUids,
  UIDS_PER_INSTALLATION,
} from "../../../src/domain/sandbox/host-uids.ts";

const WHOLE = "         0          0 4294967295\n";
const ROOTLESS = "0 1000 1\n1 100000 65536\n";
const KEYS = Array.from({ length: 500 }, (_, index) => `/srv/${index}`);

describe("user ids on the host", () => {
  it("of the database are no sandbox's, and differ by the data directory", () => {
    const uids = KEYS.map((key) => databaseUid(key, WHOLE));
    const firstOfSandboxes = Math.min(...KEYS.map(sandboxUids));
    expect(Math.max(...uids)).toBeLessThan(firstOfSandboxes);
    expect(Math.min(...uids)).toBeGreaterThan(65_536);
    expect(new Set(uids).size).toBeGreaterThan(KEYS.length * 0.9);
  });

  it("of sandboxes lie in the range of their installation alone", () => {
    const firsts = new Set(KEYS.map(sandboxUids));
    for (const first of firsts) expect(firsts.has(first + UIDS_PER_INSTALLATION - 1)).toBe(false);
  });

  it("of the database are below the end of a small user namespace, and never `nobody`", () => {
    expect(databaseUid("/srv/data", ROOTLESS)).toBe(65_533);
  });

  it.each([
    [WHOLE, 300_000_000, 3, true],
    [ROOTLESS, 65_000, 3, true],
    [ROOTLESS, 65_536, 1, true],
    [ROOTLESS, 65_535, 3, false],
    ["0 0 1\n700000000 5 65535\n", 700_000_000, 65_536, false],
    ["", 0, 1, false],
  ])("are in the map %j from %i on, %i of them: %s", (map, first, count, isThere) => {
    expect(mapHasUids(map, first, count)).toBe(isThere);
  });
});
