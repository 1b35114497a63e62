/** How opencode's events become ends of turns, and when a turn is ended, by the daemon's own limits. */
import type { TurnEnd } from "../../../daemon/report.ts";
import { expect, test } from "vitest";
import { TURN_LIMITS } from "../../../daemon/adapters/adapter.ts";
import { OpencodeTurns, type Retry, type RuntimeEvent } from "../../../daemon/adapters/opencode/turns.ts";

type Properties = NonNullable<RuntimeEvent["properties"]>;

/** Turns by the daemon's own limits, and all that they lead to. */
const start = () => {
  const seen = {
    ended: [] as TurnEnd[],
    aborted: [] as string[],
    failed: [] as string[],
    stopped: new Set<string>(),
    retried: [] as Retry[],
    active: false,
  };
  const observer = {
    turn: (active: boolean) => void (seen.active = active),
    activity: () => undefined,
    ended: (end: TurnEnd) => void seen.ended.push(end),
    followed: () => undefined,
    isActive: () => seen.active,
  };
  const turns = new OpencodeTurns(TURN_LIMITS, observer, {
    abort: (id) => void seen.aborted.push(id),
    retried: (retry) => void seen.retried.push(retry),
    failed: (id) => void seen.failed.push(id),
    wasStopped: (id) => seen.stopped.delete(id),
    again: () => "in 20 s",
  });
  const take = (type: string, properties: Properties, atMs = 0) => {
    turns.take({ type, properties: { sessionID: "one", ...properties } }, atMs);
  };
  const busy = (atMs = 0) => take("session.status", { status: { type: "busy" } }, atMs);
  const idle = (atMs = 0) => take("session.idle", {}, atMs);
  const call = (id: string, rest: object = {}) =>
    take("message.updated", { info: { id, role: "assistant", ...rest } });
  const retry = (attempt: number, atMs: number, next = atMs) =>
    take("session.status", { status: { type: "retry", attempt, message: "overloaded", next } }, atMs);
  return { seen, turns, take, busy, idle, call, retry };
};

const error = (message: string) => ({ name: "UnknownError", data: { message } });
const failed = (code: string) => ({ state: "failed", error: { code } });

test("a turn with an answer is completed, and reported once although its end is repeated", () => {
  const { seen, busy, idle, call } = start();
  busy();
  call("m1");
  expect(seen.active).toBe(true);
  idle();
  idle();
  expect(seen.ended).toEqual([{ state: "completed", error: null }]);
  expect(seen.active).toBe(false);
});

test("an error that is repeated after the turn is the same one, a later one is another", () => {
  const { seen, take, busy, idle } = start();
  busy();
  take("session.error", { error: error("Model not found: a/b.") });
  idle();
  take("session.error", { error: error("ProviderModelNotFoundError: Model not found: a/b.\n    at x") }, 1);
  expect(seen.ended).toMatchObject([failed("unknown_model")]);
  expect(seen.failed).toEqual(["one", "one"]);
  take("session.error", { error: error("ProviderNoProvidersError: No providers are available\n  at y") }, 2);
  expect(seen.ended.at(-1)).toMatchObject(failed("no_model"));
});

const OVERFLOW = { name: "ContextOverflowError", data: { message: "Too long." } };
/** The events of a conversation that is too long, with the model's summary. */
const overflow = ({ take, busy, call }: ReturnType<typeof start>, end: object) => {
  busy();
  call("m1");
  take("session.error", { error: OVERFLOW });
  call("summary", { summary: true });
  call("summary", { summary: true, ...end });
};

test("a conversation that is too long, and is repaired by a summary, does not fail the turn", () => {
  const one = start();
  overflow(one, { finish: "stop" });
  one.call("m2", { finish: "stop" });
  one.idle();
  expect(one.seen.ended).toEqual([{ state: "completed", error: null }]);
});

test("a summary alone repairs nothing, and what failed last is the turn's error", () => {
  const cut = start();
  overflow(cut, { finish: "stop" });
  cut.idle();
  expect(cut.seen.ended).toMatchObject([failed("context_exceeded")]);
  const refused = start();
  overflow(refused, { finish: "error", error: error("no") });
  refused.take("session.error", { error: { name: "APIError", data: { message: "no", statusCode: 401 } } });
  refused.idle();
  expect(refused.seen.ended).toMatchObject([failed("model_unauthorized")]);
});

test("a call that failed repairs nothing either", () => {
  const { seen, take, busy, idle, call } = start();
  busy();
  call("m1");
  take("session.error", { error: { name: "APIError", data: { message: "no", statusCode: 401 } } });
  call("m2", { finish: "error", error: error("no") });
  idle();
  expect(seen.ended).toMatchObject([failed("model_unauthorized")]);
});

test.each([
  ["length", "max_tokens"],
  ["content-filter", "model_refused"],
  ["error", "turn_failed"],
])("an answer that ends by %s fails the turn, and says so", (finish, code) => {
  const { seen, busy, idle, call } = start();
  busy();
  call("m1", { finish });
  idle();
  expect(seen.ended).toMatchObject([failed(code)]);
});

test("the sixth try of a call is the last", () => {
  const { seen, busy, idle, call, retry } = start();
  busy();
  call("m1");
  for (let attempt = 1; attempt < 6; attempt += 1) retry(attempt, attempt * 1000);
  expect(seen.aborted).toEqual([]);
  retry(6, 6000);
  retry(7, 7000);
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("model_unavailable")]);
  expect(seen.ended[0]?.error?.message).toContain("It said: overloaded");
});

test("each failed attempt is told with its call, except for the last, which ends the turn", () => {
  const { seen, take, busy, retry } = start();
  busy();
  retry(1, 1000);
  retry(2, 2000);
  take("message.updated", { info: { id: "m1", role: "assistant", finish: "tool-calls" } }, 5000);
  retry(1, 6000);
  retry(6, 9000);
  expect(seen.retried).toEqual([
    { sessionId: "one", callSince: 0, attempt: 1, message: "overloaded" },
    { sessionId: "one", callSince: 0, attempt: 2, message: "overloaded" },
    { sessionId: "one", callSince: 5000, attempt: 1, message: "overloaded" },
  ]);
});

test("a turn that ends for too many requests says when the provider takes requests again", () => {
  const { seen, take, busy, idle } = start();
  busy();
  take("session.status", { status: { type: "retry", attempt: 6, message: "Too Many Requests", next: 0 } });
  idle();
  const [end] = seen.ended;
  expect(end?.error).toMatchObject({ code: "model_rate_limited" });
  expect(end?.error?.message).toContain("Try again in 20 s.");
});

test("a call is retried for three minutes, and no wait starts after that", () => {
  const early = start();
  early.busy();
  early.retry(1, 1000, 179_000);
  expect(early.seen.aborted).toEqual([]);
  early.retry(2, 179_000, 181_000);
  expect(early.seen.aborted).toEqual(["one"]);
  const late = start();
  late.busy();
  late.retry(1, 1000, 3_600_000);
  expect(late.seen.aborted).toEqual(["one"]);
});

test("a call that succeeded gives the next one its three minutes", () => {
  const { seen, take, busy, retry } = start();
  busy();
  take("message.updated", { info: { id: "m1", role: "assistant", finish: "tool-calls" } }, 170_000);
  retry(1, 200_000, 300_000);
  expect(seen.aborted).toEqual([]);
});

test("the turn of the call after the two hundredth is ended", () => {
  const { seen, busy, idle, call } = start();
  busy();
  for (let number = 1; number <= 200; number += 1) call(`m${number}`, { finish: "unknown" });
  expect(seen.aborted).toEqual([]);
  call("m201");
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("too_many_model_calls")]);
});

const MINUTE = 60_000;

/** A turn whose model is asked, and has been heard at `atMs`. */
const turnAt = (atMs = 0) => {
  const one = start();
  const part = (messageID: string, id: string, rest: object, at = atMs) =>
    one.take("message.part.updated", { part: { id, messageID, type: "text", ...rest } }, at);
  one.busy();
  one.take("message.updated", { info: { id: "m1", role: "assistant" } }, atMs);
  one.busy(atMs);
  return { ...one, part };
};

test("a model that is silent for two minutes ends the turn, although its connection is kept open", () => {
  const { seen, turns, take, idle } = turnAt();
  take("message.part.delta", { messageID: "m1" }, MINUTE);
  turns.check(3 * MINUTE);
  expect(seen.aborted).toEqual([]);
  turns.check(3 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("model_unavailable")]);
  expect(seen.ended[0]?.error?.message).toContain("nothing for 120 s");
});

test("a runtime that does not call the model for two minutes has its turn ended, before its first message and after it", () => {
  for (const begins of [false, true]) {
    const { seen, turns, busy, idle, call } = start();
    busy();
    if (begins) call("m1");
    turns.check(2 * MINUTE);
    expect(seen.aborted).toEqual([]);
    turns.check(2 * MINUTE + 1);
    expect(seen.aborted).toEqual(["one"]);
    idle();
    expect(seen.ended).toMatchObject([failed("no_answer")]);
    expect(seen.ended[0]?.error?.message).toContain("did not call the model for 120 s");
  }
});

test("a turn ends with its whole answer if that comes as the turn is being ended for the model's silence, and not with one that asks for a tool", () => {
  for (const [finish, end] of [
    ["stop", { state: "completed", error: null }],
    ["tool-calls", failed("model_unavailable")],
    ["length", failed("model_unavailable")],
  ] as const) {
    const { seen, turns, take, idle } = turnAt();
    turns.check(2 * MINUTE + 1);
    expect(seen.aborted).toEqual(["one"]);
    take("message.updated", { info: { id: "m1", role: "assistant", finish, time: { completed: 1 } } });
    idle();
    expect(seen.ended).toMatchObject([end]);
  }
});

test("a silent call behind a whole one ends the turn as failed", () => {
  const { seen, turns, take, idle, busy } = turnAt();
  take("message.updated", { info: { id: "m1", role: "assistant", finish: "stop", time: { completed: 1 } } });
  take("message.updated", { info: { id: "m2", role: "assistant" } }, MINUTE);
  busy(MINUTE);
  take("message.part.delta", { messageID: "m2" }, MINUTE);
  turns.check(3 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("model_unavailable")]);
});

/** The sessions whose turns end, two minutes after one was found at work with this part. */
const endedWith = (part: object) => {
  const { seen, turns } = start();
  const parts = [{ id: "p1", messageID: "m1", type: "text", ...part }];
  turns.already([{ id: "one", newest: { info: { id: "m1", role: "assistant" }, parts } }], 0);
  turns.check(2 * MINUTE + 1);
  return seen.aborted;
};

test("a model is silent, too, in a turn whose beginning was not seen, but not while its tool runs", () => {
  expect(endedWith({ text: "It be" })).toEqual(["one"]);
  expect(endedWith({ type: "tool", state: { status: "running" } })).toEqual([]);
});

test.each(["text", "reasoning", "tool", "step-finish"])("a %s of the model keeps a turn", (type) => {
  const { seen, turns, part } = turnAt();
  part("m1", "p1", { type }, 2 * MINUTE);
  turns.check(4 * MINUTE);
  expect(seen.aborted).toEqual([]);
});

test("events without a sign of the model do not keep a turn", () => {
  const { seen, turns, take, part } = turnAt();
  part("m1", "p1", { type: "step-start" }, 2 * MINUTE);
  take("session.updated", {}, 2 * MINUTE);
  take("message.updated", { info: { id: "u1", role: "user" } }, 2 * MINUTE);
  turns.check(2 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
});

test("a model may be silent while a tool runs, between its calls, and while the runtime waits for a retry", () => {
  const { seen, turns, take, part, retry } = turnAt();
  part("m1", "p1", { type: "tool", state: { status: "running" } });
  turns.check(30 * MINUTE);
  part("m1", "p1", { type: "tool", state: { status: "completed" } }, 30 * MINUTE);
  take(
    "message.updated",
    { info: { id: "m1", role: "assistant", finish: "tool-calls", time: { completed: 1 } } },
    30 * MINUTE,
  );
  turns.check(31 * MINUTE - 1);
  take("message.updated", { info: { id: "m2", role: "assistant" } }, 31 * MINUTE);
  retry(1, 31 * MINUTE, 32 * MINUTE);
  turns.check(63 * MINUTE);
  expect(seen.aborted).toEqual([]);
  take("session.status", { status: { type: "busy" } }, 63 * MINUTE);
  turns.check(65 * MINUTE);
  expect(seen.aborted).toEqual([]);
  turns.check(65 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
});

test("the arguments of a tool, which the runtime does not report, may take ten minutes", () => {
  const { seen, turns, part, idle } = turnAt();
  part("m1", "p1", { type: "tool", state: { status: "pending" } });
  turns.check(10 * MINUTE);
  expect(seen.aborted).toEqual([]);
  turns.check(10 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended[0]?.error?.message).toContain("nothing for 600 s");
});

test("a turn that takes longer than four hours is ended, and says so", () => {
  const { seen, turns, part, idle } = turnAt();
  part("m1", "p1", { type: "tool", state: { status: "running" } });
  turns.check(240 * MINUTE);
  expect(seen.aborted).toEqual([]);
  turns.check(240 * MINUTE + 1);
  idle();
  expect(seen.ended).toMatchObject([failed("turn_too_long")]);
});

test("a turn whose beginning was not seen is ended, too, and says so although a call failed before", () => {
  const { seen, turns, take, idle } = start();
  turns.already([{ id: "one", newest: null }], 0);
  take("session.error", { error: error("no") });
  turns.check(240 * MINUTE + 1);
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("turn_too_long")]);
});

test("ten calls in a row without new text or a completed tool end the turn", () => {
  const { seen, part, idle, call } = turnAt();
  const over = (id: string) => call(id, { finish: "unknown", time: { completed: 1 } });
  // The same beginning of an answer, again and again. The first one is new.
  for (let number = 1; number <= 10; number += 1) {
    call(`m${number}`);
    part(`m${number}`, `p${number}`, { text: "half " });
    // A call of a tool that does not exist brings nothing.
    part(`m${number}`, `t${number}`, { type: "tool", tool: "invalid", state: { status: "completed" } });
    over(`m${number}`);
    over(`m${number}`);
  }
  expect(seen.aborted).toEqual([]);
  call("m11");
  over("m11");
  expect(seen.aborted).toEqual(["one"]);
  idle();
  expect(seen.ended).toMatchObject([failed("too_many_model_calls")]);
});

test.each([
  ["new text", { type: "text", text: "found it" }, []],
  ["a tool that has completed", { type: "tool", state: { status: "completed" } }, []],
  [
    "only what has completed, and no tool that failed,",
    { type: "tool", state: { status: "error" } },
    ["one"],
  ],
])("%s begins the count of calls again", (_, brings, aborted) => {
  const { seen, part, call } = turnAt();
  for (let number = 1; number <= 18; number += 1) {
    call(`m${number}`);
    if (number === 9) part("m9", "p9", brings);
    call(`m${number}`, { finish: "unknown", time: { completed: 1 } });
  }
  expect(seen.aborted).toEqual(aborted);
});

test("a turn that the user ends is interrupted, also while it waits for a retry", () => {
  const { seen, take, busy, idle, call, retry } = start();
  busy();
  call("m1");
  take("session.error", { error: { name: "MessageAbortedError", data: { message: "Aborted" } } });
  idle();
  busy();
  retry(1, 1000);
  idle();
  expect(seen.ended).toEqual([
    { state: "interrupted", error: null },
    { state: "interrupted", error: null },
  ]);
});

test("a turn without a single model call has failed, unless a person ended it or its beginning was not seen", () => {
  const whole = start();
  whole.busy();
  whole.idle();
  expect(whole.seen.ended).toMatchObject([failed("no_answer")]);
  const stopped = start();
  stopped.busy();
  stopped.seen.stopped.add("one");
  stopped.idle();
  expect(stopped.seen.ended).toEqual([{ state: "interrupted", error: null }]);
  const joined = start();
  joined.turns.already([{ id: "one", newest: null }], 0);
  joined.idle();
  expect(joined.seen.ended).toEqual([{ state: "completed", error: null }]);
});

test("another agent's requests are bounded, and are not turns of their own", () => {
  const { seen, take, busy, idle, retry } = start();
  take("session.created", { info: { id: "one", parentID: "another" } });
  busy();
  retry(6, 1000);
  idle();
  expect(seen.aborted).toEqual(["one"]);
  expect(seen.ended).toEqual([]);
});
