/** What page and command line conclude from saved work. */
import { expect, it } from "vitest";
import { hasContents, runsWithoutSave } from "../../../src/domain/save/shown.ts";

type Shown = Parameters<typeof runsWithoutSave>[0];
type Saved = NonNullable<Shown["saved"]>;

const AT = "2026-11-20T12:00:00.000Z";
const saved = (rest: Partial<Saved> = {}) => ({ at: AT, wip: "c0ffee", files: 3, commits: 1, ...rest });
const EMPTY = { at: null, wip: null, files: 0, commits: 0 };
const EARLIER = { id: "s", at: AT, files: 1, commits: 0 };

it.each<[boolean, string, Partial<Saved>]>([
  [true, "files", { commits: 0, wip: null }],
  [true, "only staged changes, or a save of an earlier version", { files: 0, commits: 0 }],
  [false, "nothing", EMPTY],
  [false, "only an earlier save, whose commit it names", { files: 0, commits: 0, earlier: [EARLIER] }],
])("a last save has contents: %s, with %s", (expected, _what, rest) => {
  expect(hasContents(saved(rest))).toBe(expected);
});

const RESTORED = { wip: null, commits: 0, refs: [], files: 0, renamed: [], skipped: [], error: null };
const BEFORE = "2026-11-20T11:00:00.000Z";
const AFTER = "2026-11-20T13:00:00.000Z";

it.each<[boolean, string, Partial<Shown>]>([
  [true, "it was not asked for", {}],
  [true, "it did not come back", { restored: { ...RESTORED, error: "the node is away" } }],
  [false, "it came back", { restored: RESTORED }],
  [false, "this sandbox was saved", { running_at: BEFORE }],
  [false, "nothing is saved", { saved: saved(EMPTY) }],
  [false, "no sandbox runs", { status: "stopped" }],
])("a session runs without its saved work: %s, as %s", (expected, _why, change) => {
  const session = {
    status: "running",
    saved: saved(),
    restored: null,
    running_at: AFTER,
    ...change,
  } as const;
  expect(runsWithoutSave(session)).toBe(expected);
});
