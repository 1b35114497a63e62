/** The host uids of sandboxes: who shares one reads the other's memory and files. */
import { expect, it } from "vitest";
import { sandboxUids, UIDS_PER_INSTALLATION } from "../../../src/domain/sandbox/host-uids.ts";
import { UIDS_PER_SANDBOX } from "../../../src/sandbox/machine/isolation/isolation.ts";
import { freeUids } from "../../../src/sandbox/machine/isolation/uids.ts";

it("gives a sandbox uids of its installation that no other sandbox has, as long as there are some", () => {
  const first = sandboxUids("installation");
  const second = first + UIDS_PER_SANDBOX;
  const all = Array.from(
    { length: UIDS_PER_INSTALLATION / UIDS_PER_SANDBOX },
    (_, index) => first + index * UIDS_PER_SANDBOX,
  );
  expect(freeUids("installation", new Set())).toBe(first);
  expect(freeUids("installation", new Set([first]))).toBe(second);
  expect(freeUids("installation", new Set(all.filter((base) => base !== second)))).toBe(second);
  expect(freeUids("installation", new Set(all.slice(0, -1)))).toBe(all.at(-1));
  expect(() => freeUids("installation", new Set(all))).toThrow("all user ids for sandboxes are in use");
});
