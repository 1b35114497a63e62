/** Messages, interrupts and answers on their way through the daemon to the real opencode. */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Attachments } from "../../daemon/attachments.ts";
import { opencodeAdapter } from "../../daemon/adapters/opencode.ts";
import { makeSteering, Steering } from "../../daemon/steering.ts";
import { startFeed } from "./support/feed.ts";
import { freePort } from "../support/machine/free-port.ts";
import { rounds } from "../support/vitest/rings.ts";
import type { SteeringName } from "../../daemon/route.ts";
import { hasOpencode, POLL, Steered } from "./support/steered.ts";

const PROMPT = { PLATFORM_INITIAL_PROMPT: "hold the prompt", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

/** For messages without attachments. */
const noFiles = new Attachments("/nonexistent");
const invalid = (path: string) => [400, { code: "invalid_request", details: { issues: [{ path }] } }];
const refused = (code: string, message: unknown) => [200, { outcome: "refused", error: { code, message } }];

describe.skipIf(!hasOpencode)("the agent of a session with a prompt", () => {
  // One start for all: each case goes on from the turn that the one before has ended.
  let steered: Steered;
  beforeAll(async () => {
    steered = await Steered.start({ environment: PROMPT });
  });
  afterAll(() => steered.stop());

  test("takes no message before the prompt's turn has ended, and answers it then", async () => {
    await steered.asked("the prompt");
    expect(await steered.send("m2", "the second message")).toEqual([200, { outcome: "busy", turn: 1 }]);
    expect([steered.follower.ended, steered.follower.turn?.state]).toEqual([0, "running"]);
    steered.model.release();
    await steered.ended(1);
    expect(await steered.send("m2", "the second message")).toEqual([200, { outcome: "accepted", turn: 2 }]);
    await steered.ended(2);
    expect(steered.model.asked("the second message")).toBe(1);
    const answers = steered.answersTo("m2");
    expect(answers.map(({ status }) => status)).toEqual(["completed"]);
    expect(JSON.stringify(answers[0]?.content)).toContain("You said the second message");
    expect(steered.items.filter(({ message_id: id }) => id === steered.daemon.sessionId)).toHaveLength(1);
  });

  test("gets a message once, however often it is handed over", async () => {
    const accepted = [200, { outcome: "accepted", turn: 3 }];
    const twice = await Promise.all([
      steered.send("m3", "hold the third"),
      steered.send("m3", "hold the third"),
    ]);
    expect(twice).toEqual([accepted, accepted]);
    expect(await steered.send("m3", "hold the third")).toEqual(accepted);
    await steered.asked("the third");
    steered.model.release();
    await steered.ended(3);
    expect(await steered.send("m3", "hold the third")).toEqual(accepted);
    await steered.deliver("m4", "the fourth");
    await steered.ended(4);
    expect(steered.model.asked("the third")).toBe(1);
    expect(steered.items.filter(({ message_id: id }) => id === "m3")).toHaveLength(1);
  });

  test("is interrupted in exactly the turn that is named, and keeps what it wrote", async () => {
    expect(await steered.deliver("m5", "hold the fifth")).toBe(5);
    await expect.poll(() => JSON.stringify(steered.answersTo("m5")), POLL).toContain("I begin.");
    expect(await steered.call("interrupt", { turn: 4 })).toEqual([200, { interrupted: false }]);
    expect(await steered.call("interrupt", { turn: 6 })).toEqual([200, { interrupted: false }]);
    expect(await steered.send("m6", "the sixth")).toEqual([200, { outcome: "busy", turn: 5 }]);
    expect(await steered.call("interrupt", { turn: 5 })).toEqual([200, { interrupted: true }]);
    await steered.ended(5);
    await steered.endedAs({ state: "interrupted", error: null });
    expect(steered.answersTo("m5")).toMatchObject([
      { status: "interrupted", content: [{ text: expect.stringMatching(/^I begin\.\s*$/) }] },
    ]);
    expect(await steered.deliver("m6", "hold the sixth")).toBe(6);
    expect(await steered.call("interrupt", { turn: 5 })).toEqual([200, { interrupted: false }]);
    await steered.asked("the sixth");
    steered.model.release();
    await steered.ended(6);
    expect(steered.answersTo("m6")).toMatchObject([{ status: "completed" }]);
  });

  test("keeps the agent and the model of the message before", async () => {
    await steered.deliver("m7", "the seventh", { agent: "second", model: "held/two" });
    expect(await steered.deliver("m8", "the eighth")).toBe(8);
    await steered.ended(8);
    const models = steered.model.calls
      .filter(({ text }) => /seventh|eighth/.test(text))
      .map(({ model }) => model);
    expect(models).toEqual(["two", "two"]);
    const [session] = JSON.parse((await steered.daemon.ask("/session")).body) as { id: string }[];
    const messages = JSON.parse((await steered.daemon.ask(`/session/${session?.id}/message`)).body) as {
      info: { agent: string };
    }[];
    expect(messages.slice(-4).map(({ info: { agent } }) => agent)).toEqual(
      Array.from({ length: 4 }, () => "second"),
    );
  });

  test("refuses an agent or a model that it does not have, and says which there are", async () => {
    expect(await steered.send("m9", "x", { agent: "nonesuch" })).toEqual(
      refused(
        "unknown_agent",
        'There is no agent "nonesuch" in this session. Choose one of: build, plan, second.',
      ),
    );
    expect(await steered.send("m10", "x", { model: "held/nonesuch" })).toEqual(
      refused("unknown_model", expect.stringContaining('There is no model "held/nonesuch"')),
    );
    await steered.ended(10);
    expect(await steered.deliver("m11", "the eleventh")).toBe(11);
    await steered.ended(11);
    expect(steered.answersTo("m11")).toMatchObject([{ status: "completed" }]);
  });

  test("offers its models and agents, and the model that a message without one gets", async () => {
    const [status, offers] = await steered.call("models");
    expect([status, offers]).toMatchObject([200, { default_model: "held/two" }]);
    expect(offers["models"]).toEqual([
      { id: "held/one", name: "One" },
      { id: "held/two", name: "Two" },
    ]);
    expect(offers["agents"]).toContainEqual({ name: "second", description: "The other one" });
    expect(JSON.stringify(offers["agents"])).not.toContain("explore");
  });

  test("answers no request that it does not have, and takes no malformed call", async () => {
    const none = [200, { answered: false }];
    const answers = [["Blue"]];
    expect(await steered.call("answer", { request_id: "que_none", answer: { answers } })).toEqual(none);
    for (const answer of [{ choice: "once", message: null }, { declined: "unattended" }])
      for (const id of ["per_none", "que_none", "none"])
        // oxlint-disable-next-line no-await-in-loop -- one call after the other
        expect(await steered.call("answer", { request_id: id, answer })).toEqual(none);
    expect(await steered.call("messages", { id: "m" })).toMatchObject(invalid("sent_at"));
    expect(await steered.send("m", "ü".repeat(64 * 1024 + 1))).toMatchObject(invalid("text"));
    expect(await steered.call("interrupt", { turn: "1" })).toMatchObject(invalid("turn"));
    expect(await steered.call("answer", { request_id: "a", answer: {} })).toMatchObject(
      invalid("answer.choice"),
    );
  });

  test("names a turn that somebody else began, too", async () => {
    const [session] = JSON.parse((await steered.daemon.ask("/session")).body) as { id: string }[];
    const headers = {
      "x-platform-user-context": steered.daemon.context(),
      "content-type": "application/json",
    };
    const body = JSON.stringify({ parts: [{ type: "text", text: "hold what came past the daemon" }] });
    await steered.daemon.ask(`/session/${session?.id}/prompt_async`, { method: "POST", headers, body });
    await steered.asked("past the daemon");
    expect(await steered.send("m12", "after it")).toEqual([200, { outcome: "busy", turn: 12 }]);
    steered.model.release();
    expect(await steered.deliver("m12", "after it")).toBe(13);
    await steered.ended(13);
    expect(steered.answersTo("m12")).toMatchObject([{ status: "completed" }]);
  });

  test("goes on with the next message after its runtime was killed in mid-turn", async () => {
    expect(await steered.deliver("m14", "hold the fourteenth")).toBe(14);
    await expect.poll(() => JSON.stringify(steered.answersTo("m14")), POLL).toContain("I begin.");
    const { runtime } = await steered.daemon.health();
    if (runtime.pid === null) throw new Error("the runtime does not run");
    process.kill(runtime.pid, "SIGKILL");
    await steered.ended(14);
    expect(steered.answersTo("m14")).toMatchObject([{ status: "interrupted" }]);
    expect(await steered.deliver("m15", "the fifteenth")).toBe(15);
    await steered.ended(15);
    expect(steered.answersTo("m15")).toMatchObject([{ status: "completed" }]);
    expect(steered.follower.ended).toBe(15);
  });

  test("gets each of several messages once that are sent while a turn ends [D02]", async () => {
    const last = rounds(5, 20);
    const first = steered.follower.ended + 1;
    await steered.deliver("n0", "hold number 0.");
    for (let count = 1; count <= last; count += 1) {
      // oxlint-disable no-await-in-loop -- each follows the one before
      await steered.asked(`number ${count - 1}.`);
      const delivered = steered.deliver(`n${count}`, `hold number ${count}.`);
      for (let turns = 0; turns < count; turns += 1) await new Promise(setImmediate);
      steered.model.release();
      expect(await delivered).toBe(first + count);
    }
    await steered.asked(`number ${last}.`);
    steered.model.release();
    await steered.ended(first + last);
    for (let count = 0; count <= last; count += 1) {
      expect(steered.model.asked(`number ${count}.`), `number ${count}`).toBe(1);
      expect(steered.answersTo(`n${count}`), `number ${count}`).toMatchObject([{ status: "completed" }]);
    }
  });
});

describe.skipIf(!hasOpencode)("the agent of a session with a former sandbox", () => {
  let steered: Steered;
  afterEach(() => steered.stop());

  test("has a summary of the conversation before people's messages, and people see a note of it [D06]", async () => {
    const recap = { text: "Ada: Fix the parser.", agent: "second", model: "held/two" };
    steered = await Steered.start({
      environment: PROMPT,
      recap,
      wip: "a11ce".repeat(8),
      prepare: ({ state }) => (state.bootstrap = "done"),
    });
    expect(await steered.deliver("m1", "What did I ask first?")).toBe(1);
    await steered.ended(1);
    const [call] = steered.model.calls;
    expect(call).toMatchObject({ model: "two", text: "What did I ask first?" });
    expect(call?.before).toContain(recap.text);
    expect(call?.before).toContain(`refs/wip/${steered.daemon.sessionId}`);
    const [note, ...others] = steered.items;
    expect(note).toMatchObject({ kind: "note", role: null, status: "completed", message_id: null });
    expect(JSON.stringify(note?.content)).toMatch(
      /has a summary of the conversation.*is saved on refs\/wip\//,
    );
    expect(others.map(({ kind, role, message_id: id }) => [kind, role, id])).toEqual([
      ["message", "user", "m1"],
      ["message", "agent", null],
    ]);
  });
});

describe.skipIf(!hasOpencode)("a turn that never begins", () => {
  let steered: Steered;
  afterEach(() => steered.stop());

  test("has ended when the prompt's agent does not exist", async () => {
    steered = await Steered.start({ environment: { ...PROMPT, PLATFORM_AGENT_NAME: "nonesuch" } });
    await steered.daemon.logged("initial prompt refused");
    expect(await steered.deliver("m2", "the second")).toBe(2);
    await steered.ended(2);
    expect(steered.answersTo("m2")).toMatchObject([{ status: "completed" }]);
  });

  test("has ended when the prompt's model does not exist, although that took no time", async () => {
    steered = await Steered.start({ environment: { ...PROMPT, PLATFORM_AGENT_MODEL: "held/nonesuch" } });
    await steered.ended(1);
    await steered.endedAs({ state: "failed", error: { code: "unknown_model" } });
    expect(await steered.send("m2", "the second")).toEqual(
      refused("unknown_model", expect.stringContaining("Model not found: held/nonesuch")),
    );
    expect(await steered.deliver("m3", "the third", { model: "held/one" })).toBe(3);
    await steered.ended(3);
  });

  test("is stopped once it begins, if it is interrupted before", async () => {
    steered = await Steered.start({ environment: PROMPT });
    await expect.poll(() => steered.follower.turn?.state, POLL).toBe("running");
    expect(await steered.call("interrupt", { turn: 1 })).toEqual([200, { interrupted: true }]);
    await steered.ended(1);
    await steered.endedAs({ state: "interrupted", error: null });
    expect(await steered.deliver("m2", "the second")).toBe(2);
    await steered.ended(2);
  });
});

describe("a runtime that does not answer", () => {
  const message = { id: "a", sent_at: 1, text: "x", model: null, agent: null };
  const session = { sessionId: "s", agentName: "default", model: null };
  const start = async (serving: boolean) => {
    const { feed } = startFeed();
    const log: unknown[] = [];
    const steering = new Steering({
      adapter: opencodeAdapter(await freePort()),
      report: { serving },
      attachments: noFiles,
      feed,
      log: (event, fields) => void log.push({ event, ...fields }),
      session,
    });
    steering.prepared();
    const call = (name: SteeringName, body: unknown) => Effect.runPromise(steering.handle(name, body));
    return { call, feed, log };
  };

  test("is not ready before it serves", async () => {
    const { call, feed } = await start(false);
    const notReady = { status: 503, body: { code: "runtime_not_ready" } };
    expect(await call("messages", message)).toMatchObject(notReady);
    expect(await call("models", {})).toMatchObject(notReady);
    const answer = { request_id: "que_1", answer: { answers: [["Blue"]] } };
    expect(await call("answer", answer)).toMatchObject(notReady);
    expect(await call("interrupt", { turn: 1 })).toEqual({ done: { interrupted: false } });
    expect([feed.turnNow.state, feed.turnsEnded]).toEqual(["idle", 0]);
  });

  test("may have a message although it did not answer, so the message keeps its turn", async () => {
    const { call, feed, log } = await start(true);
    const unreachable = { status: 502, body: { code: "upstream_unreachable" } };
    expect(await call("messages", message)).toMatchObject(unreachable);
    expect([feed.turnNow.state, feed.turnsEnded]).toEqual(["running", 0]);
    expect(await call("messages", { ...message, id: "b" })).toEqual({ done: { outcome: "busy", turn: 1 } });
    expect(await call("messages", message)).toMatchObject(unreachable);
    expect(await call("models", {})).toMatchObject(unreachable);
    const entry = {
      event: "the agent runtime did not answer",
      message: expect.stringContaining("ECONNREFUSED"),
    };
    expect(log).toMatchObject([
      { ...entry, call: "messages" },
      { ...entry, call: "messages" },
      { ...entry, call: "models" },
    ]);
  });
});

describe.skipIf(!hasOpencode)("a runtime whose events do not arrive", () => {
  let steered: Steered;
  beforeAll(async () => {
    steered = await Steered.start();
    await steered.daemon.logged("ready");
  });
  afterAll(() => steered.stop());

  test("has every turn's end and items, because they are read from it", async () => {
    const { feed, read } = startFeed();
    const adapter = opencodeAdapter(steered.daemon.runtimePort);
    const session = { sessionId: "another title", agentName: "default", model: null };
    const log: unknown[] = [];
    const steering = new Steering({
      adapter,
      report: { serving: true },
      attachments: noFiles,
      feed,
      log: (event, fields) => void log.push([event, fields]),
      session,
    });
    steering.prepared();
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const call = yield* makeSteering(steering);
          // Its events are followed once, so that the conversation has its observer, and not again.
          const { promise, resolve } = Promise.withResolvers<void>();
          const turns = {
            turn: () => undefined,
            activity: () => undefined,
            ended: () => undefined,
            followed: resolve,
            isActive: () => false,
          };
          const following = yield* Effect.forkChild(
            adapter.follow(session.sessionId, { turns, conversation: steering.observer }),
          );
          yield* Effect.promise(() => promise);
          yield* Fiber.interrupt(following);
          const message = { id: "unseen", sent_at: 1, text: "an unseen message", model: null, agent: null };
          const answer = yield* Effect.promise(() => call("messages", message));
          expect(answer).toEqual({ done: { outcome: "accepted", turn: 1 } });
          const { takeAll } = read();
          yield* Effect.promise(() => expect.poll(() => takeAll().ended, POLL).toBe(1));
          expect([...takeAll().items.values()]).toMatchObject([
            { message_id: "unseen", role: "user" },
            { role: "agent", status: "completed" },
          ]);
        }),
      ),
    );
    expect(log).toEqual([]);
  });
});
