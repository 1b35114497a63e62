/** Following opencode's conversation by recorded events and listings: what was missed, and in which order it comes. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import { PassedCalls } from "../../../daemon/agent/passed-calls.ts";
import { OpencodeApi, openSession } from "../../../daemon/adapters/opencode/api.ts";
import { OpencodeConversation } from "../../../daemon/adapters/opencode/conversation.ts";
import { messageItems, TOP } from "../../../daemon/adapters/opencode/items.ts";
import { readMessage, type Recorded } from "../../../daemon/adapters/opencode/records.ts";
import { ConversationFeed } from "../../../daemon/conversation/feed.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import type { NativeItem, TurnNow } from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { eventsOf, LISTING, openRequests, SESSION, type RecordedEvent } from "../support/recorded.ts";

const EVENTS = eventsOf();
const CHILD = LISTING.find(({ info }) => info.sessionID !== SESSION.id)?.info.sessionID ?? "";

/** A conversation that is followed, and everything that it reported. */
const start = (title = SESSION.title) => {
  const feed = new ConversationFeed({
    redactor: new Redactor([]),
    now: () => 0,
    after: () => () => undefined,
  });
  const drafts: ItemDraft[] = [];
  const turns: TurnNow[] = [];
  const seen = { unsettled: 0 };
  const conversation = new OpencodeConversation(new PassedCalls());
  const connect = (): void =>
    conversation.connected({
      title,
      observer: {
        item: (item) => {
          drafts.push(item);
          feed.item(item);
        },
        grown: feed.grown,
        turn: (now) => {
          turns.push(now);
          feed.turn(now);
        },
        titled: feed.titled,
      },
      now: () => 9_000_000_000_000,
      onUnsettled: () => void (seen.unsettled += 1),
    });
  connect();
  conversation.listedBusy([]);
  const items = (): readonly NativeItem[] => {
    feed.attach(0, () => undefined).close();
    return [...feed.versionsAfter(0)];
  };
  const takeAll = (events: readonly RecordedEvent[]): void => {
    for (const event of events) conversation.take(event);
  };
  return { conversation, feed, drafts, turns, seen, connect, items, takeAll };
};

interface Info {
  readonly id: string;
  readonly time: { readonly created: number };
}

/** The last event about each message. */
const LAST_OF = new Map(
  EVENTS.filter(({ type }) => type === "message.updated").map(
    (event) => [(event.properties["info"] as Info).id, event] as const,
  ),
);

/** An event may show the message's end too early. A listing does not. */
const begun = ({ time, ...info }: Info) => ({
  ...info,
  time: { created: time.created },
  cost: 0,
  tokens: undefined,
  finish: undefined,
  error: undefined,
});

/** A listing as opencode has it after these events: it knows no text of an open part. */
const listingAfter = (events: readonly RecordedEvent[]): readonly Recorded[] => {
  const infos = new Map<string, unknown>();
  const parts = new Map<string, { readonly id: string; readonly messageID: string }>();
  for (const event of events) {
    const { type, properties } = event;
    const { info, part } = properties as { info: Info; part: { id: string; messageID: string } };
    if (type === "message.updated") infos.set(info.id, LAST_OF.get(info.id) === event ? info : begun(info));
    if (type === "message.part.updated") parts.set(part.id, part);
  }
  return [...infos].flatMap(([id, info]) => {
    const own = [...parts.values()].filter(({ messageID }) => messageID === id);
    return readMessage({ info: JSON.parse(JSON.stringify(info)), parts: own }) ?? [];
  });
};

/** The sessions that are at work after these events. */
const busyAfter = (events: readonly RecordedEvent[]): readonly string[] => {
  const busy = new Set<string>();
  for (const { type, properties } of events) {
    const { sessionID, status } = properties as { sessionID: string; status?: { type: string } };
    if (type === "session.status" && status?.type !== "idle") busy.add(sessionID);
    else if (type === "session.status" || type === "session.idle") busy.delete(sessionID);
  }
  return [...busy];
};

/** The items without requests, which no listing has, and without what an attempt that failed had written. */
const comparable = (items: readonly (NativeItem | ItemDraft)[]) =>
  items
    .filter(({ kind, content }) => kind !== "request" && !JSON.stringify(content).includes('"partia'))
    .map((item) => Object.assign({}, item, { rev: 0, order: 0 }))
    .toSorted((a, b) => (a.native_id < b.native_id ? -1 : 1));

const TASK = LISTING.flatMap((message) => messageItems(message, TOP)).find(
  ({ tool }) => tool?.name === "task",
);
const EXPECTED = comparable(
  LISTING.flatMap((message) =>
    messageItems(
      message,
      message.info.sessionID === SESSION.id
        ? TOP
        : { parentId: TASK?.native_id ?? "", turnId: TASK?.turn_id ?? null },
    ),
  ),
);

/** The items of the main session in the order of its messages and their parts. */
const ORDER = LISTING.filter(({ info }) => info.sessionID === SESSION.id).flatMap((message) =>
  messageItems(message, TOP).map((item) => item.native_id),
);

/** The same items, in the order in which they are shown. */
const shownOrder = (items: readonly NativeItem[]): readonly string[] =>
  items
    .toSorted((one, other) => (one.order ?? 0) - (other.order ?? 0))
    .flatMap(({ native_id: id }) => (ORDER.includes(id) ? [id] : []));

describe("events alone", () => {
  test("give what the listing gives, and the texts that a failed attempt wrote", () => {
    const { takeAll, items, feed } = start();
    takeAll(EVENTS);
    expect(comparable(items())).toEqual(EXPECTED);
    expect(feed.turnNow).toEqual({ state: "idle", waiting_for: null });
    const partial = items().filter(({ content }) => JSON.stringify(content).includes('"partia'));
    expect(partial.map(({ status, error }) => [status, error?.code])).toEqual([
      ["interrupted", "model_connection_lost"],
      ["interrupted", undefined],
    ]);
  });

  test("never change an item's status after its end", () => {
    const { takeAll, drafts } = start();
    takeAll(EVENTS);
    const ends = new Map<string, string>();
    for (const { native_id: id, status } of drafts) {
      expect(ends.get(id) ?? status, id).toBe(status);
      if (isClosed(status)) ends.set(id, status);
    }
    expect(ends.size).toBeGreaterThan(EXPECTED.length);
  });

  test("show a text while it grows", () => {
    const { conversation, items } = start();
    const texts = new Set<string>();
    for (const event of eventsOf("text")) {
      conversation.take(event);
      for (const { kind, content } of items()) if (kind === "thought") texts.add(JSON.stringify(content));
    }
    expect(texts.size).toBe(3);
  });

  test("report that a turn is idle after the last item of it, also if it was aborted", () => {
    const { conversation, turns, seen } = start();
    conversation.listedSessions([SESSION]);
    for (const turn of ["text aborted", "tool aborted", "question aborted"]) {
      const events = eventsOf(turn);
      const firstIdle = events.findIndex(({ type }) => type === "session.idle");
      for (const event of events.slice(0, firstIdle + 1)) conversation.take(event);
      expect([turns.at(-1)?.state, conversation.open.length, seen.unsettled > 0]).toEqual([
        "running",
        1,
        true,
      ]);
      for (const event of events.slice(firstIdle + 1)) conversation.take(event);
      expect(turns.at(-1)?.state).toBe("idle");
    }
  });

  test("show a request while it is open, and its answer afterwards", () => {
    const { conversation, turns, items, takeAll } = start();
    conversation.listedSessions([SESSION]);
    const events = eventsOf("question");
    const answered = events.findIndex(({ type }) => type === "question.replied");
    takeAll(events.slice(0, answered));
    const request = items().find(({ kind }) => kind === "request");
    expect(turns.at(-1)).toEqual({ state: "requires_action", waiting_for: request?.native_id });
    expect(request).toMatchObject({ status: "pending", turn_id: expect.stringMatching(/^msg_/) });
    takeAll(events.slice(answered));
    const settled = items().find(({ kind }) => kind === "request");
    expect(settled).toMatchObject({ status: "completed", content: [{ type: "text", text: "Blue" }] });
    takeAll(eventsOf("question aborted"));
    expect(items().findLast(({ kind }) => kind === "request")).toMatchObject({ status: "interrupted" });
    expect(turns.at(-1)?.state).toBe("idle");
  });

  test("show the daemon's own answer to a request, also if the turn ends before opencode reports it", () => {
    const { conversation, items, takeAll } = start();
    conversation.listedSessions([SESSION]);
    const events = eventsOf("question");
    const answered = events.findIndex(({ type }) => type === "question.replied");
    takeAll(events.slice(0, answered));
    const request = items().find(({ kind }) => kind === "request");
    conversation.given.set(String(request?.native_id), "Blue");
    takeAll(events.slice(answered + 1));
    const settled = items().find(({ kind }) => kind === "request");
    expect(settled).toMatchObject({ status: "completed", content: [{ type: "text", text: "Blue" }] });
  });

  test("of another agent session are ignored", () => {
    const { takeAll, items, feed } = start("another title");
    takeAll(EVENTS);
    expect([items(), feed.turnNow.state]).toEqual([[], "idle"]);
  });
});

describe("a stream that breaks off", () => {
  test("is repaired by the next listing, wherever it broke off and however late the listing is", () => {
    const at = fc.integer({ min: 0, max: EVENTS.length });
    const cuts = fc.array(fc.record({ lost: at, late: fc.integer({ min: 0, max: 30 }) }), { maxLength: 4 });
    fc.assert(
      fc.property(at, cuts, (first, breaks) => {
        const { conversation, connect, items, takeAll, feed } = start();
        conversation.listedSessions([SESSION]);
        let from = first;
        takeAll(EVENTS.slice(0, first));
        for (const { lost, late } of [...breaks, { lost: EVENTS.length, late: 0 }]) {
          // Events up to `listed` are lost. The listing is from then, but comes after `late` more events.
          const listed = Math.max(from, lost);
          connect();
          takeAll(EVENTS.slice(listed, listed + late));
          const listing = listingAfter(EVENTS.slice(0, listed));
          conversation.listedMessages(listing.filter(({ info }) => info.sessionID === SESSION.id));
          conversation.listedMessages(listing.filter(({ info }) => info.sessionID === CHILD));
          conversation.listedBusy(busyAfter(EVENTS.slice(0, listed)));
          from = Math.min(EVENTS.length, listed + late);
        }
        conversation.listedRequests([], conversation.asked);
        conversation.listedBusy([]);
        expect(comparable(items())).toEqual(EXPECTED);
        expect(shownOrder(items())).toEqual(ORDER);
        expect(feed.turnNow.state).toBe("idle");
        expect(items().filter(({ status }) => !isClosed(status))).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("loses the pieces of an open text, and keeps what was known until the whole comes", () => {
    const { conversation, connect, items } = start();
    conversation.listedSessions([SESSION]);
    const events = eventsOf("text aborted");
    const deltas = events.flatMap(({ type }, index) => (type === "message.part.delta" ? [index] : []));
    const [, , third = 0, fourth = 0] = deltas;
    for (const event of events.slice(0, third)) conversation.take(event);
    connect();
    conversation.listedMessages(listingAfter(events.slice(0, fourth)));
    conversation.listedBusy([SESSION.id]);
    const textNow = () =>
      items()
        .map(({ content }) => JSON.stringify(content))
        .at(-1);
    expect(textNow()).toContain('"This is a lo"');
    const closed = events.findLastIndex(({ type }) => type === "message.part.updated");
    for (const event of events.slice(fourth, closed)) conversation.take(event);
    expect(textNow()).toContain('"This is a lo"');
    for (const event of events.slice(closed)) conversation.take(event);
    expect(textNow()).toContain("This is a long text that will");
  });

  test("takes nothing back for a listing that is older than what is known", () => {
    const { connect, conversation, items, takeAll } = start();
    takeAll(EVENTS);
    const before = items();
    for (let count = 1; count < EVENTS.length; count += 7) {
      connect();
      conversation.listedMessages(listingAfter(EVENTS.slice(0, count)));
      conversation.listedBusy([]);
    }
    expect(items()).toEqual(before);
  });

  test("finds open requests in the listing, and ends those that are gone", () => {
    const { conversation, items, turns } = start();
    conversation.listedSessions([SESSION]);
    conversation.listedMessages(LISTING.filter(({ info }) => info.sessionID === SESSION.id));
    conversation.listedBusy([SESSION.id]);
    conversation.listedRequests(openRequests("question"), []);
    expect(turns.at(-1)?.state).toBe("requires_action");
    conversation.listedRequests([], conversation.asked);
    expect(items().find(({ kind }) => kind === "request")).toMatchObject({ status: "interrupted" });
    expect(turns.at(-1)?.state).toBe("running");
    // opencode goes on listing a request whose turn was aborted.
    conversation.listedRequests(openRequests("question"), []);
    expect([conversation.asked, turns.at(-1)?.state]).toEqual([[], "running"]);
  });

  test("ends what the runtime left open, with its tools", () => {
    const { conversation, items, turns, takeAll } = start();
    conversation.listedSessions([SESSION]);
    const events = eventsOf("tool aborted");
    takeAll(
      events.slice(
        0,
        events.findIndex(({ type }) => type === "session.error"),
      ),
    );
    conversation.end(conversation.open.map(({ id }) => id));
    expect(items().at(-1)).toMatchObject({ status: "interrupted", completed_at: 9_000_000_000_000 });
    conversation.listedBusy([]);
    expect([conversation.open, turns.at(-1)?.state]).toEqual([[], "idle"]);
  });
});

test("a subagent that is called again belongs to the later call from then on", () => {
  const { conversation, items } = start();
  conversation.listedSessions([SESSION]);
  const root = LISTING.find(({ parts }) => parts.some(({ tool }) => tool === "task"));
  const answers = LISTING.filter(({ info }) => info.sessionID === CHILD && info.role === "assistant");
  const [first, second] = answers;
  if (root === undefined || first === undefined || second === undefined) throw new Error("no subagent");
  const again = `prt_${second.info.id.slice(4, 16)}again`;
  const calls = root.parts.flatMap((part) =>
    part.tool === "task" ? [part, { ...part, id: again }] : [part],
  );
  conversation.listedMessages([{ info: root.info, parts: calls }, ...answers]);
  const parents = items().flatMap(({ parent_id: id }) => id ?? []);
  expect(new Set(parents)).toEqual(new Set([TASK?.native_id, again]));
});

test("of two agent sessions with one title, the older one is followed, and gets the messages", async () => {
  const sessions = [
    { id: "ses_new", title: "one", time: { created: 2, updated: 4 } },
    { id: "ses_old", title: "one", time: { created: 1, updated: 3 } },
  ];
  const { conversation } = start("one");
  conversation.listedSessions(sessions);
  const api = new OpencodeApi("http://127.0.0.1:9");
  api.get = (_, schema) => Effect.orDie(Schema.decodeUnknownEffect(schema)(sessions));
  const opened = await Effect.runPromise(openSession(api, "one"));
  expect([conversation.root, opened.id]).toEqual(["ses_old", "ses_old"]);
});
