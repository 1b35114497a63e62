/** Messages on their way to the service (outbox.ts O1 to O6). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Message, Outbox } from "../../../dashboard/composer/outbox.ts";

const PATH = "/v1/projects/p/sessions/s";
const HOUR_MS = 3_600_000;
const said = (text: string): Message => ({ text, delivery: "queue" });

const begin = (me = "Mona") => {
  const refused: string[] = [];
  const outbox = new Outbox(PATH, me, {
    changed: () => {},
    taken: () => {},
    refused: (message) => refused.push(message.text),
  });
  const states = () => outbox.sent.map(({ message, problem }) => [message.text, problem ?? outbox.absence]);
  return { outbox, refused, states };
};

const TAKEN = { status: 201, body: { message: {} } };

type Answer = { status: number; body: unknown } | null;

describe("messages on their way", () => {
  const stored = new Map<string, string>();
  /** The service's answer to each call. Null: it is away. */
  let answer: Answer = null;
  let calls: { id: string; text: string }[] = [];

  beforeEach(() => {
    vi.useFakeTimers();
    stored.clear();
    calls = [];
    answer = null;
    const storage = {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => stored.set(name, value),
      removeItem: (name: string) => stored.delete(name),
    };
    vi.stubGlobal("sessionStorage", storage);
    vi.stubGlobal("localStorage", storage);
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

  const unsent = () => [...stored.keys()].filter((name) => name.includes("unsent"));

  it("wait for a service that is away, for hours, and leave once when the page hears from it", async () => {
    const { outbox, states } = begin();
    outbox.send(said("First."));
    outbox.send(said("Second."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(states()).toEqual([
      ["First.", "The service does not respond."],
      ["Second.", "The service does not respond."],
    ]);
    calls = [];
    answer = TAKEN;
    outbox.heard();
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

  it("outlast a reload, under the same id", async () => {
    const before = begin();
    before.outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    before.outbox.end();
    const [{ id } = { id: "" }] = calls;
    calls = [];
    answer = TAKEN;
    const after = begin();
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(calls).toEqual([expect.objectContaining({ id, text: "First." })]);
    expect([after.states(), unsent()]).toEqual([[], []]);
  });

  it("can be cancelled while they wait, and not while they are on their way", async () => {
    const { outbox } = begin();
    outbox.send(said("First."));
    const [{ id } = { id: "" }] = outbox.sent;
    expect(outbox.takeBack(id)).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(outbox.takeBack(id)).toMatchObject({ text: "First." });
    calls = [];
    answer = TAKEN;
    outbox.heard();
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
    const { outbox, refused, states } = begin();
    outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    answer = { status: 429, body: { code: "queue_full", error: "20 wait." } };
    outbox.heard();
    await vi.advanceTimersByTimeAsync(0);
    expect([refused, states(), unsent()]).toEqual([["First."], [], []]);
  });

  it("are not sent under another person's name by themselves", async () => {
    const mona = begin();
    mona.outbox.send(said("First."));
    await vi.advanceTimersByTimeAsync(60_000);
    mona.outbox.end();
    calls = [];
    answer = TAKEN;
    const { states } = begin("Otto");
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect([calls, states()]).toEqual([[], [["First.", "Another person wrote this in this tab."]]]);
  });
});
