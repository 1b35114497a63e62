/** Messages, interrupts and answers on their way through the daemon to the real opencode. */
import { execFileSync } from "node:child_process";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Attachments } from "../../../daemon/agent/attachments.ts";
import { opencodeAdapter } from "../../../daemon/adapters/opencode/opencode.ts";
import { makeSteering, Steering } from "../../../daemon/agent/steering.ts";
import { startFeed } from "../support/feed.ts";
import { freePort } from "../../support/machine/free-port.ts";
import type { SteeringName } from "../../../daemon/http/route.ts";
import { hasOpencode, POLL, Steered } from "../support/steered.ts";

/** For messages without attachments. */
const noFiles = new Attachments("/nonexistent");
const invalid = (path: string) => [400, { code: "invalid_request", details: { issues: [{ path }] } }];

describe("a runtime that does not answer", () => {
  const message = { id: "a", sent_at: 1, text: "x", model: null, agent: null };
  const session = { sessionId: "s", agentName: "default", model: null };
  const start = async (serving: boolean) => {
    const { feed } = startFeed();
    const log: unknown[] = [];
    const steering = new Steering({
      adapter: opencodeAdapter(await freePort()),
      report: { serving, turn: { active: null } },
      attachments: noFiles,
      feed,
      log: (event, fields) => void log.push({ event, ...fields }),
      session,
      restart: Effect.void,
    });
    steering.prepared();
    const call = (name: SteeringName, body: unknown) => Effect.runPromise(steering.handle(name, body));
    return { call, feed, log, steering };
  };

  test("takes no message once its sandbox is about to end, and begins no turn, until it stays after all", async () => {
    const { call, feed, steering } = await start(true);
    steering.end();
    expect(await call("messages", message)).toMatchObject({ status: 503, body: { code: "ending" } });
    expect([feed.turnNow.state, feed.turnsEnded]).toEqual(["idle", 0]);
    steering.goOn();
    // It is handed over, and this runtime does not answer.
    expect(await call("messages", message)).not.toMatchObject({ body: { code: "ending" } });
  });

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

describe.skipIf(!hasOpencode)("the daemon over opencode", () => {
  let steered: Steered;
  beforeAll(async () => {
    steered = await Steered.start();
    await steered.daemon.logged("ready");
  });
  afterAll(() => steered.stop());

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

  test("ends a stopped turn although the process hangs, and goes on in a new one", async () => {
    const turn = await steered.deliver("h1", "hold until it hangs");
    await steered.asked("until it hangs");
    const port = String(steered.daemon.runtimePort);
    const [pid = ""] = execFileSync("pgrep", ["-f", "--", `--port ${port}`], { encoding: "utf8" }).split(
      "\n",
    );
    process.kill(Number(pid), "SIGSTOP");
    await steered.call("interrupt", { turn });
    await steered.ended(turn);
    await steered.daemon.logged("the agent runtime does not stop its turn, so its process ends");
    steered.model.release();
    const next = await steered.deliver("h2", "go on");
    await steered.ended(next);
    expect(steered.answersTo("h2")).toMatchObject([{ status: "completed" }]);
  });

  test("has every turn's end and items although no event arrives, because they are read from opencode", async () => {
    const { feed, read } = startFeed();
    const adapter = opencodeAdapter(steered.daemon.runtimePort);
    const session = { sessionId: "another title", agentName: "default", model: null };
    const log: unknown[] = [];
    const steering = new Steering({
      adapter,
      report: { serving: true, turn: { active: null } },
      attachments: noFiles,
      feed,
      log: (event, fields) => void log.push([event, fields]),
      session,
      restart: Effect.void,
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
            titled: () => undefined,
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
