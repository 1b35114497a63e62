/** Since when the page says that the model is silent. */
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  applyDelta,
  applyItem,
  applySnapshot,
  applyState,
  emptyConversation,
  type Item,
  silentSince,
} from "../../../dashboard/conversation/reading/model.ts";
import { sampleItem } from "../samples/sample-conversation.ts";

const NO_USAGE = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };

const item = (id: string, seq: number, rest: object): Item =>
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
  sampleItem(id, { seq, place: seq, ...rest }) as unknown as Item;

const said = (text: string) => ({ content: [{ type: "text", text }] });

const at = (ms: number) => new Date(ms).toISOString();
const agent = (id: string, seq: number, rest: object = {}) =>
  item(id, seq, { role: "agent", kind: "message", ...rest });
const runningAt = (ms: number) => ({ state: "running" as const, since: at(ms), waiting_for: null });

describe("the model's silence", () => {
  afterEach(() => vi.useRealTimers());

  it("begins with the turn, and again with each text and each step of the agent", () => {
    vi.useFakeTimers({ now: 50_000 });
    const conversation = emptyConversation();
    expect(silentSince(conversation)).toBeNull();
    applyState(conversation, { usage: NO_USAGE, queue_held: false, state: runningAt(40_000) }, 1);
    expect(silentSince(conversation)).toBe(40_000);
    applyItem(conversation, agent("a", 2, { status: "running", ...said("a") }));
    expect(silentSince(conversation)).toBe(50_000);
    vi.setSystemTime(60_000);
    applyDelta(conversation, { item_id: "a", offset: 1, text: "b" });
    vi.setSystemTime(70_000);
    applyItem(conversation, item("queued", 3, { role: "user", status: "queued" }));
    expect(silentSince(conversation)).toBe(60_000);
    applyState(conversation, { usage: NO_USAGE, queue_held: false, state: runningAt(65_000) }, 4);
    expect(silentSince(conversation)).toBe(65_000);
  });

  it("is none while a tool runs, a person is asked, or nothing is done", () => {
    const conversation = emptyConversation();
    applyState(conversation, { usage: NO_USAGE, queue_held: false, state: runningAt(40_000) }, 1);
    applyItem(conversation, agent("t", 2, { kind: "tool", status: "running" }));
    expect(silentSince(conversation)).toBeNull();
    applyItem(conversation, agent("t", 3, { kind: "tool", status: "completed", place: 2 }));
    expect(silentSince(conversation)).not.toBeNull();
    for (const state of ["requires_action", "idle"] as const) {
      applyState(
        conversation,
        { usage: NO_USAGE, queue_held: false, state: { ...runningAt(40_000), state } },
        4,
      );
      expect(silentSince(conversation)).toBeNull();
    }
  });

  it("is known to a reader who comes later, but not within a text that still grows", () => {
    vi.useFakeTimers({ now: 90_000 });
    const read = (last: object) => {
      const conversation = emptyConversation();
      const ended = agent("a", 1, { status: "completed", created_at: at(41_000), completed_at: at(45_000) });
      applySnapshot(conversation, {
        items: [agent("b", 2, last), ended],
        usage: NO_USAGE,
        queue_held: false,
        queue: [],
        requests: [],
        seq: 2,
        next_cursor: null,
        state: runningAt(40_000),
      });
      return silentSince(conversation);
    };
    expect(read({ status: "completed", created_at: at(42_000), completed_at: at(43_000) })).toBe(45_000);
    expect(read({ status: "running", created_at: at(42_000), completed_at: null })).toBe(90_000);
  });
});
