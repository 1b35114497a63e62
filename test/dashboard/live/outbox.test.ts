/** Messages on their way to the service (outbox.ts O1 to O5, outboxes.ts P1 to P3). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Message } from "../../../dashboard/live/outbox.ts";
import { Outboxes } from "../../../dashboard/live/outboxes.ts";

const PATH = "/v1/projects/p/sessions/s";
const HOUR_MS = 3_600_000;
const said = (text: string): Message => ({ text, delivery: "queue" });

/** The browser's locks, of which each page can be ended. */
const makeLocks = () => {
  const tails = new Map<string, Promise<void>>();
  const ofPage = () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const request = async (name: string, work: () => Promise<void> | void): Promise<void> => {
      const before = tails.get(name) ?? Promise.resolve();
      const done = before.then(() => Promise.race([work(), ended]));
      tails.set(name, done);
      return done;
    };
    return { locks: { request } as unknown as LockManager, end };
  };
  return { ofPage };
};

const begin = (me = "Mona", locks: LockManager | null = null) => {
  const refused: string[] = [];
  const elsewhere: string[] = [];
  const outboxes = new Outboxes({ refused: (_path, { message }) => elsewhere.push(message), locks });
  outboxes.enter({ id: `id of ${me}`, name: me });
  const outbox = outboxes.at(PATH);
  const show = () =>
    outbox.listen({
      changed: () => {},
      taken: () => {},
      refused: (message) => refused.push(message.text),
    });
  const states = () => outbox.sent.map(({ message, problem }) => [message.text, problem ?? outbox.absence]);
  return { outboxes, outbox, refused, elsewhere, states, show, leave: show() };
};

const TAKEN = { status: 201, body: { message: {} } };

type Answer = { status: number; body: unknown } | null;

describe("messages on their way", () => {
  let stored = {};
  let hears: ((event: Partial<StorageEvent>) => void)[] = [];
  /** The service's answer to each call. Null: it is away. */
  let answer: Answer = null;
  let calls: { id: string; text: string }[] = [];

  beforeEach(() => {
    vi.useFakeTimers();
    calls = [];
    hears = [];
    answer = null;
    stored = Object.create({
      getItem(this: Record<string, string>, name: string) {
        return this[name] ?? null;
      },
      setItem(this: Record<string, string>, name: string, value: string) {
        this[name] = value;
        for (const hear of hears) hear({ key: name, newValue: value });
      },
      removeItem(this: Record<string, string>, name: string) {
        delete this[name];
        for (const hear of hears) hear({ key: name, newValue: null });
      },
    });
    vi.stubGlobal("localStorage", stored);
    vi.stubGlobal("addEventListener", (_name: string, hear: (event: Partial<StorageEvent>) => void) =>
      hears.push(hear),
    );
    vi.stubGlobal("fetch", async (_path: string, { body }: { body: string }) => {
      calls.push(JSON.parse(body));
      if (answer === null) throw new TypeError("Failed to fetch");
      return new Response(JSON.stringify(answer.body), { status: answer.status });
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const unsent = () => Object.keys(stored).filter((name) => name.includes("unsent"));

  it("wait for a service that is away, for hours, and leave once when the page hears from it", async () => {
    const { outbox, outboxes, states } = begin();
    outbox.send(said("First."));
    outbox.send(said("Second."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(states()).toEqual([
      ["First.", "The service does not respond."],
      ["Second.", "The service does not respond."],
    ]);
    calls = [];
    answer = TAKEN;
    outboxes.heard();
    await vi.advanceTimersByTimeAsync(0);
    expect(calls.map(({ text }) => text)).toEqual(["First.", "Second."]);
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls.length, states(), unsent()]).toEqual([2, [], []]);
  });

  it("leave by themselves if the stream stayed open beside a call that failed", async () => {
    answer = { status: 503, body: { code: "busy", error: "Busy." } };
    const { outbox, states } = begin();
    outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(states()).toEqual([["First.", "Busy."]]);
    answer = TAKEN;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states()).toEqual([]);
  });

  it("outlast a reload, in their order and under the same ids", async () => {
    const before = begin();
    before.outbox.send(said("First."));
    before.outbox.send(said("Second."));
    await vi.advanceTimersByTimeAsync(60_000);
    before.outboxes.leave();
    const [{ id } = { id: "" }] = calls;
    calls = [];
    answer = TAKEN;
    const after = begin();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(calls.map(({ text }) => text)).toEqual(["First.", "Second."]);
    expect(calls[0]?.id).toBe(id);
    expect([after.states(), unsent()]).toEqual([[], []]);
  });

  it("leave while other pages are shown", async () => {
    const { outbox, outboxes, leave } = begin();
    outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    leave();
    calls = [];
    answer = TAKEN;
    outboxes.heard();
    await vi.advanceTimersByTimeAsync(0);
    expect([calls.length, unsent()]).toEqual([1, []]);
  });

  it("leave by their own page alone while it is open, and by one other when it is closed", async () => {
    const pages = makeLocks();
    const own = pages.ofPage();
    const first = begin("Mona", own.locks);
    const second = begin("Mona", pages.ofPage().locks);
    const third = begin("Mona", pages.ofPage().locks);
    first.outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([second.states(), third.states()]).toEqual([[], []]);
    first.outboxes.leave();
    own.end();
    calls = [];
    answer = TAKEN;
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls.map(({ text }) => text), unsent()]).toEqual([["First."], []]);
  });

  it("are not sent by a page after another one has cancelled them", async () => {
    const first = begin();
    first.outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    const second = begin();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(second.states()).toHaveLength(1);
    expect(first.outbox.takeBack(first.outbox.sent[0]?.id ?? "")).toMatchObject({ text: "First." });
    calls = [];
    answer = TAKEN;
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls, second.states()]).toEqual([[], []]);
  });

  it("can be cancelled while they wait, and not while they are on their way", async () => {
    const { outbox, outboxes } = begin();
    outbox.send(said("First."));
    const [{ id } = { id: "" }] = outbox.sent;
    expect(outbox.takeBack(id)).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(outbox.takeBack(id)).toMatchObject({ text: "First." });
    calls = [];
    answer = TAKEN;
    outboxes.heard();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls, unsent()]).toEqual([[], []]);
  });

  it("stop after four failures of a service that answers, and are sent again on demand", async () => {
    answer = { status: 500, body: { code: "internal", error: "Broken." } };
    const { outbox, states } = begin();
    outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls.length, states()]).toEqual([4, [["First.", "Broken."]]]);
    answer = TAKEN;
    outbox.again(outbox.sent[0]?.id ?? "");
    await vi.advanceTimersByTimeAsync(0);
    expect([new Set(calls.map(({ id }) => id)).size, states()]).toEqual([1, []]);
  });

  it("go back to the composer if the service refuses them, after a wait too", async () => {
    const { outbox, outboxes, refused, states } = begin();
    outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    answer = { status: 429, body: { code: "queue_full", error: "20 wait." } };
    outboxes.heard();
    await vi.advanceTimersByTimeAsync(0);
    expect([refused, states(), unsent()]).toEqual([["First."], [], []]);
  });

  it.each([
    ["queue_full", 1],
    ["secret_in_message", 0],
  ])(
    "cause a notice if the service refuses them with %s, and wait for the session's page",
    async (code, kept) => {
      const { outbox, refused, elsewhere, leave, show } = begin();
      outbox.send(said("First."));
      leave();
      answer = { status: 422, body: { code, error: "No." } };
      await vi.advanceTimersByTimeAsync(60_000);
      expect([refused, elsewhere, unsent().length]).toEqual([[], ["No."], kept]);
      show();
      expect([refused, unsent()]).toEqual([["First."], []]);
    },
  );

  it("are neither sent nor shown to another person, and forgotten", async () => {
    const mona = begin();
    mona.outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    mona.outboxes.leave();
    calls = [];
    answer = TAKEN;
    const { states } = begin("Otto");
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls, states(), unsent()]).toEqual([[], [], []]);
  });
});
