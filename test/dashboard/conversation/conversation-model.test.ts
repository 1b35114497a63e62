import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  applyDelta,
  applyEarly,
  applyItem,
  applyOlder,
  applySnapshot,
  applyState,
  callsThatWait,
  type Conversation,
  emptyConversation,
  hasSpoken,
  type Item,
  openRequests,
  shownItems,
  textOf,
  turnUsage,
  waitingMessages,
} from "../../../dashboard/conversation/reading/model.ts";
import { sampleItem } from "../samples/sample-conversation.ts";

const NO_USAGE = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };

/** What the service sends, in order. Deltas have no number. */
type Sent =
  | { readonly type: "item"; readonly item: Item }
  | { readonly type: "state"; readonly seq: number; readonly cost: number }
  | { readonly type: "delta"; readonly id: string; readonly offset: number; readonly text: string };

const item = (id: string, seq: number, rest: Readonly<Record<string, unknown>>): Item =>
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
  sampleItem(id, { seq, place: seq, ...rest }) as unknown as Item;

const said = (text: string) => ({ content: [{ type: "text", text }] });

const stateOf = (seq: number, cost: number) => ({
  state:
    seq === 0
      ? { state: "idle" as const, since: null, waiting_for: null }
      : { state: "running" as const, since: null, waiting_for: `r${seq}` },
  usage: { ...NO_USAGE, cost_usd: cost },
  queue_held: seq % 3 === 1,
});

const receive = (conversation: Conversation, sent: Sent): void => {
  if (sent.type === "item") applyItem(conversation, sent.item);
  else if (sent.type === "delta")
    applyDelta(conversation, { item_id: sent.id, offset: sent.offset, text: sent.text });
  else applyState(conversation, stateOf(sent.seq, sent.cost), sent.seq);
};

/** The service's page after these. */
const pageAt = (history: readonly Sent[], before = Infinity, limit = 4) => {
  const items = new Map<string, Item>();
  let [seq, state] = [0, stateOf(0, 0)];
  for (const sent of history) {
    if (sent.type === "delta") continue;
    if (sent.type === "item") items.set(sent.item.id, sent.item);
    else state = stateOf(sent.seq, sent.cost);
    seq = sent.type === "item" ? sent.item.seq : sent.seq;
  }
  const all = [...items.values()].toSorted((a, b) => b.place - a.place);
  const found = all.filter(({ place }) => place < before);
  const page = found.slice(0, limit);
  return {
    items: page,
    state: state.state,
    usage: state.usage,
    queue_held: state.queue_held,
    queue: all.filter(({ status }) => status === "queued").toReversed(),
    requests: [],
    seq,
    next_cursor: found.length > limit ? String(page.at(-1)?.place) : null,
  };
};

const readAll = (conversation: Conversation, history: readonly Sent[]): void => {
  while (conversation.older !== null) applyOlder(conversation, pageAt(history, Number(conversation.older)));
};

/** What the page shows. */
const seen = (conversation: Conversation) => ({
  shown: shownItems(conversation).map((one) => [one.id, one.status, textOf(one), one.place]),
  waiting: conversation.order.filter(({ status }) => status === "queued").map(({ id }) => id),
  turn: conversation.turn,
  usage: conversation.usage,
  held: conversation.held,
});

interface Step {
  readonly id: number;
  readonly act: "grow" | "save" | "end" | "state" | "queue";
  readonly text: string;
}

const steps = fc.array(
  fc.record({
    id: fc.nat({ max: 7 }),
    act: fc.constantFrom<Step["act"][]>("grow", "grow", "save", "end", "state", "queue"),
    text: fc.string({ minLength: 1, maxLength: 5 }),
  }),
  { maxLength: 40 },
);

/** A history of items whose texts grow in deltas, are saved now and then, and end with all their text. */
const historyOf = (plan: readonly Step[]): readonly Sent[] => {
  const texts = new Map<string, { text: string; place: number; open: boolean }>();
  const history: Sent[] = [];
  let seq = 0;
  const save = (id: string, status: string): void => {
    seq += 1;
    const known = texts.get(id) ?? { text: "", place: seq, open: true };
    // An accepted message moves to the end, once.
    const place = status === "accepted" ? seq : known.place;
    texts.set(id, { ...known, place, open: status === "running" });
    history.push({ type: "item", item: item(id, seq, { place, status, ...said(known.text) }) });
  };
  for (const { id, act, text } of plan) {
    const name = act === "queue" ? `q${id}` : `i${id}`;
    const known = texts.get(name);
    if (act === "state") {
      seq += 1;
      history.push({ type: "state", seq, cost: id });
    } else if (act === "queue") {
      if (known === undefined) save(name, "queued");
      else if (
        history.some((sent) => sent.type === "item" && sent.item.id === name && sent.item.status === "queued")
      )
        save(name, "accepted");
    } else if (known === undefined) save(name, "running");
    else if (!known.open) continue;
    else if (act === "grow") {
      texts.set(name, { ...known, text: known.text + text });
      history.push({ type: "delta", id: name, offset: known.text.length, text });
    } else save(name, act === "end" ? "completed" : "running");
  }
  for (const [id, { open }] of texts) if (open && id.startsWith("i")) save(id, "completed");
  return history;
};

const numberOf = (sent: Sent): number => {
  if (sent.type === "item") return sent.item.seq;
  return sent.type === "state" ? sent.seq : 0;
};

/** A page read at the beginning, then everything in order. */
const readOnce = (history: readonly Sent[]): Conversation => {
  const conversation = emptyConversation();
  for (const sent of history) receive(conversation, sent);
  return conversation;
};

describe("a conversation as the page reads it", () => {
  it("is the same after any cut and resume as after one reading", () => {
    fc.assert(
      fc.property(steps, fc.array(fc.nat({ max: 80 })), fc.nat({ max: 80 }), (plan, cuts, first) => {
        const history = historyOf(plan);
        const conversation = emptyConversation();
        let at = Math.min(first, history.length);
        applySnapshot(conversation, pageAt(history.slice(0, at)));
        for (const cut of [...cuts.toSorted((a, b) => a - b), history.length]) {
          for (; at < Math.min(cut, history.length); at += 1) {
            const sent = history[at];
            if (sent !== undefined) receive(conversation, sent);
          }
          // The stream breaks. It resumes after the last number. Deltas in between are lost.
          at = Math.min(at + 3, history.length);
          const missed = history.slice(0, at).filter((sent) => numberOf(sent) > conversation.seq);
          for (const sent of missed) receive(conversation, sent);
        }
        readAll(conversation, history);
        expect(seen(conversation)).toEqual(seen(readOnce(history)));
      }),
    );
  });

  it("is the same if versions arrive twice and late, and older pages in between", () => {
    fc.assert(
      fc.property(steps, fc.nat({ max: 40 }), fc.nat({ max: 40 }), (plan, from, older) => {
        const history = historyOf(plan);
        const conversation = emptyConversation();
        applySnapshot(conversation, pageAt(history.slice(0, from)));
        for (const [index, sent] of history.entries()) {
          receive(conversation, sent);
          if (index === older) {
            for (const late of history.slice(0, index))
              if (late.type !== "delta") receive(conversation, late);
          }
          if (index === older && conversation.older !== null)
            applyOlder(conversation, pageAt(history, Number(conversation.older)));
        }
        readAll(conversation, history);
        expect(seen(conversation)).toEqual(seen(readOnce(history)));
      }),
    );
  });

  it("begins again after a reset with what the service has", () => {
    fc.assert(
      fc.property(steps, fc.nat({ max: 40 }), (plan, at) => {
        const history = historyOf(plan);
        const conversation = emptyConversation();
        for (const sent of history.slice(0, at)) receive(conversation, sent);
        applySnapshot(conversation, pageAt(history));
        readAll(conversation, history);
        expect(seen(conversation)).toEqual(seen(readOnce(history)));
      }),
    );
  });

  it("shows an item that moved at its new place alone, also if its old version comes late", () => {
    const conversation = emptyConversation();
    const ids = () => shownItems(conversation).map(({ id }) => id);
    for (const [at, id] of ["a", "b", "c"].entries()) applyItem(conversation, item(id, at + 1, {}));
    applyItem(conversation, item("late", 4, {}));
    applyItem(conversation, item("b", 5, { place: 5 }));
    applyItem(conversation, item("b", 2, {}));
    applyItem(conversation, item("c", 6, { place: 6 }));
    expect(ids()).toEqual(["a", "late", "b", "c"]);
  });

  it("drops a delta that does not continue the text, and one of a finished item", () => {
    const conversation = emptyConversation();
    applyItem(conversation, item("a", 1, { status: "running", ...said("ab") }));
    for (const offset of [0, 1, 3]) applyDelta(conversation, { item_id: "a", offset, text: "x" });
    applyDelta(conversation, { item_id: "unknown", offset: 0, text: "x" });
    applyDelta(conversation, { item_id: "a", offset: 2, text: "c" });
    expect(conversation.order.map(textOf)).toEqual(["abc"]);
    applyItem(conversation, item("a", 2, { place: 1, status: "completed", ...said("abc") }));
    applyDelta(conversation, { item_id: "a", offset: 3, text: "x" });
    expect(conversation.order.map(textOf)).toEqual(["abc"]);
  });

  it("leaves an item of a page that was not read to that page, unless it waits", () => {
    const history = Array.from({ length: 10 }, (_, index): Sent => ({
      type: "item",
      item: item(`i${index}`, index + 1, {}),
    }));
    const conversation = emptyConversation();
    applySnapshot(conversation, pageAt(history));
    applyItem(conversation, item("i0", 11, { place: 1 }));
    applyItem(conversation, item("i1", 12, { place: 2, status: "queued" }));
    expect(shownItems(conversation).map(({ id }) => id)).toEqual(["i6", "i7", "i8", "i9"]);
    expect(conversation.items.has("i1")).toBe(true);
    applyItem(conversation, item("i1", 13, { place: 2, status: "cancelled" }));
    expect(conversation.items.has("i1")).toBe(false);
  });

  it("does not skip what the stream still has to send when another answer brings an item earlier", () => {
    const conversation = emptyConversation();
    applyItem(conversation, item("a", 1, {}));
    applyEarly(conversation, item("c", 3, { status: "queued" }));
    expect([conversation.items.has("c"), conversation.seq]).toEqual([true, 1]);
    applyItem(conversation, item("b", 2, {}));
    applyItem(conversation, item("c", 3, { status: "queued" }));
    expect([conversation.order.map(({ id }) => id), conversation.seq]).toEqual([["a", "b", "c"], 3]);
  });

  it("shows an open request at its place, even before the pages between are read", () => {
    const history = Array.from({ length: 10 }, (_, index): Sent => ({
      type: "item",
      item: item(`i${index}`, index + 1, index === 0 ? { kind: "request", status: "pending" } : {}),
    }));
    const conversation = emptyConversation();
    const page = { ...pageAt(history), requests: history.slice(0, 1).map((sent) => Object(sent).item) };
    applySnapshot(conversation, page);
    expect(shownItems(conversation).map(({ id }) => id)).toEqual(["i0", "i6", "i7", "i8", "i9"]);
    expect(openRequests(conversation).map(({ id }) => id)).toEqual(["i0"]);
    applyItem(conversation, item("i0", 11, { place: 1, kind: "request", status: "completed" }));
    expect(shownItems(conversation).map(({ id }) => id)).toEqual(["i6", "i7", "i8", "i9"]);
    expect(openRequests(conversation)).toEqual([]);
  });

  it("shows a question once: as the request that can be answered, and not as the tool call too", () => {
    const conversation = emptyConversation();
    const tool = { name: "question", kind: "other", title: null, input: {}, output: "", truncated: false };
    const request = { kind: "question", title: "", patterns: [], questions: [] };
    const call = (rest: object) => ({ kind: "tool", turn_id: "t1", tool: { ...tool, changes: [] }, ...rest });
    applyItem(conversation, item("call", 1, call({ status: "running" })));
    const shown = () => shownItems(conversation).map(({ id }) => id);
    expect(shown()).toEqual(["call"]);
    applyItem(conversation, item("r", 2, { kind: "request", turn_id: "t1", status: "pending", request }));
    applyItem(conversation, item("other", 3, call({ turn_id: "t2" })));
    expect(shown()).toEqual(["r", "other"]);
    applyItem(conversation, item("r", 4, { place: 2, kind: "request", turn_id: "t1", request }));
    expect(shown()).toEqual(["r", "other"]);
    applyItem(conversation, item("call", 5, call({ place: 1, status: "failed" })));
    expect(shown()).toEqual(["call", "r", "other"]);
  });

  it("tells the message that the agent gets now from those that wait", () => {
    const conversation = emptyConversation();
    for (const [index, status] of ["sending", "queued", "queued"].entries()) {
      applyItem(conversation, item(`m${index}`, index + 1, { status }));
    }
    const told = (isLive = true) => {
      const { next, queue } = waitingMessages(conversation, isLive);
      return [next.map(({ id }) => id), queue.map(({ id }) => id)];
    };
    expect(told()).toEqual([["m0"], ["m1", "m2"]]);
    applyItem(conversation, item("m0", 4, { status: "accepted" }));
    expect(told()).toEqual([["m1"], ["m2"]]);
    expect(told(false)).toEqual([[], ["m1", "m2"]]);
    applyState(conversation, { ...stateOf(0, 0), queue_held: true }, 6);
    expect(told()).toEqual([[], ["m1", "m2"]]);
    applyState(conversation, { ...stateOf(7, 0), queue_held: false }, 7);
    expect([conversation.turn.state, told()]).toEqual(["running", [[], ["m1", "m2"]]]);
  });

  it("knows that the first message began the turn in which nothing else is known yet", () => {
    const conversation = emptyConversation();
    for (const id of ["m1", "m2"])
      applyItem(conversation, item(id, Number(id.slice(1)), { status: "queued" }));
    applyState(conversation, stateOf(7, 0), 7);
    const ids = () => waitingMessages(conversation, true).next.map(({ id }) => id);
    expect(ids()).toEqual(["m1"]);
    applyItem(conversation, item("m1", 8, { status: "accepted" }));
    expect(ids()).toEqual([]);
  });

  it("knows the newest state of the turn, also if a later item came before it", () => {
    const conversation = emptyConversation();
    applyState(conversation, stateOf(7, 0), 7);
    applyItem(conversation, item("m1", 9, {}));
    applyState(conversation, stateOf(8, 0), 8);
    applyState(conversation, stateOf(7, 0), 7);
    expect([conversation.turn.waiting_for, conversation.seq]).toEqual(["r8", 9]);
  });

  it("sums a turn only if its beginning was read", () => {
    const usage = { input_tokens: 10, output_tokens: 2, cached_tokens: 1, cost_usd: 0.5 };
    const history = Array.from({ length: 6 }, (_, index): Sent => ({
      type: "item",
      item: item(`i${index}`, index + 1, { turn_id: index < 1 ? "t1" : "t2", usage }),
    }));
    const conversation = emptyConversation();
    applySnapshot(conversation, pageAt(history));
    expect(turnUsage(conversation)).toBe(null);
    applyOlder(conversation, pageAt(history, Number(conversation.older)));
    expect(turnUsage(conversation)).toEqual({
      input_tokens: 50,
      output_tokens: 10,
      cached_tokens: 5,
      cost_usd: 2.5,
    });
  });
});

const conversationWith = (...items: readonly Item[]): Conversation => {
  const conversation = emptyConversation();
  for (const one of items) applyItem(conversation, one);
  return conversation;
};

it("knows whether the agent has said something since somebody wrote to it", () => {
  const own = { ...said("Do it."), role: "user" };
  expect(hasSpoken(conversationWith(item("a", 1, said("Done.")), item("b", 2, own)))).toBe(false);
  expect(hasSpoken(conversationWith(item("b", 2, own), item("c", 3, said("I look."))))).toBe(true);
});

const call = (id: string, seq: number, command: string) =>
  item(id, seq, { kind: "tool", status: "running", tool: { input: { command } } });
const asks = (request: object) =>
  item("r", 3, { kind: "request", status: "pending", request: { kind: "permission", ...request } });

it("knows which call waits for a permission: that of its command, otherwise the newest before it", () => {
  const calls = [call("a", 1, "rm a"), call("b", 2, "rm b")];
  expect([...callsThatWait(conversationWith(...calls, asks({ command: "rm a" })))]).toEqual(["a"]);
  expect([...callsThatWait(conversationWith(...calls, asks({})))]).toEqual(["b"]);
  expect([...callsThatWait(conversationWith(...calls))]).toEqual([]);
});
