import { describe, expect, it } from "vitest";
import type { Item } from "../../../dashboard/conversation/reading/model.ts";
import { entriesOf, isSameEntry } from "../../../dashboard/conversation/turns.ts";
import { sampleItem, sampleTool, text } from "../samples/sample-conversation.ts";

type Json = Readonly<Record<string, unknown>>;

const made = (id: string, rest: Json = {}): Item =>
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
  sampleItem(id, { agent: null, pruned: false, ...rest }) as unknown as Item;

const person = (id: string, rest: Json = {}) => made(id, { role: "user", ...text("Do it."), ...rest });
const note = (id: string) => made(id, { kind: "note", role: null });
const tool = (id: string, kind: string, rest: Json = {}) => made(id, { ...sampleTool({ kind }), ...rest });
const spent = (cost: number) => ({ input_tokens: 10, output_tokens: 2, cached_tokens: 1, cost_usd: cost });

const change = (path: string, patch: string | null) => ({ path, operation: "update", patch });

const entries = (items: readonly Item[], known: { isAtWork?: boolean; isCut?: boolean } = {}) =>
  entriesOf(items, { isAtWork: false, isCut: false, ...known });

/** The ids in each entry, with `[` where a turn begins and `]` where it ends. */
const shapeOf = (...given: Parameters<typeof entries>): string =>
  entries(...given)
    .map(({ items, head, foot }) => {
      const ids = items.map(({ id }) => id).join("+");
      return `${head === null ? "" : "["}${ids}${foot === null ? "" : "]"}`;
    })
    .join(" ");

describe("the turns of a conversation", () => {
  it("have one head and one foot each, around what the agent did after a message", () => {
    const items = [
      person("p"),
      made("a"),
      tool("t", "execute"),
      note("n"),
      made("b"),
      person("q"),
      made("c"),
    ];
    expect(shapeOf(items)).toBe("p [a t n b] q [c]");
    // The end of the last one is not known yet.
    expect(shapeOf(items, { isAtWork: true })).toBe("p [a t n b] q [c");
  });

  it("end where the runtime says that another one began", () => {
    const items = [made("a", { turn_id: "1" }), made("b"), made("c", { turn_id: "2" })];
    expect(shapeOf(items)).toBe("[a b] [c]");
  });

  it("name the model and the chosen agent, and sum up time, tokens, cost and changes", () => {
    const items = [
      person("p", { agent: "plan" }),
      tool("t", "edit", {
        ...sampleTool({
          kind: "edit",
          changes: [
            change("a", "--- a\n+++ a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"),
            change("a", "@@ -9 +9 @@\n+w\n"),
          ],
        }),
        usage: spent(0.5),
      }),
      made("a", { model: "x/y", usage: spent(0.25), completed_at: "2026-11-20T06:53:05.000Z" }),
    ];
    const all = entries(items);
    expect(all[1]?.head).toEqual({ agent: "plan", model: "x/y", at: "2026-11-20T06:52:05.000Z" });
    expect(all[2]?.foot).toEqual({
      id: null,
      durationMs: 60_000,
      usage: { input_tokens: 20, output_tokens: 4, cached_tokens: 2, cost_usd: 0.75 },
      changes: { files: 1, lines: { added: 3, removed: 1 } },
    });
    const binary = entries([tool("t", "edit", sampleTool({ changes: [change("b", null)] }))]);
    expect(binary[0]?.foot?.changes).toEqual({ files: 1, lines: null });
  });

  it("have no sums while their beginning is not read", () => {
    expect(shapeOf([made("a"), person("p"), made("b")], { isCut: true })).toBe("[a p [b]");
  });
});

describe("reads and searches in a row", () => {
  it("are one entry from two on, as long as none failed", () => {
    const failed = tool("f", "read", { status: "failed" });
    const items = [
      tool("a", "read"),
      tool("b", "search"),
      tool("c", "execute"),
      tool("d", "read"),
      failed,
      tool("e", "read"),
    ];
    expect(shapeOf(items)).toBe("[a+b c d f e]");
    expect(shapeOf([tool("a", "read"), tool("b", "read", { status: "running" })], { isAtWork: true })).toBe(
      "[a+b",
    );
  });

  it("of a subagent are not mixed with its parent's", () => {
    expect(shapeOf([tool("a", "read"), tool("b", "read", { parent_id: "t" })])).toBe("[a b]");
  });
});

describe("an entry", () => {
  it("is drawn again only if something in it has changed", () => {
    const [first, second] = [made("a"), made("b")];
    const before = entries([first, second], { isAtWork: true });
    const after = entries([first, { ...second }], { isAtWork: true });
    expect(after.map((entry, at) => isSameEntry(entry, before[at] ?? entry))).toEqual([true, false]);
    const ended = entries([first, second]);
    expect(ended.map((entry, at) => isSameEntry(entry, before[at] ?? entry))).toEqual([true, false]);
  });
});
