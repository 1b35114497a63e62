/**
 * Calls that wait for a person, over lives of the service, and on two nodes. The server of the connector is scripted, everything
 * else is the service over its twins, on the test clock.
 */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import { describe, expect } from "vitest";
import { Actors } from "../../../src/services/actors.ts";
import { cataloguePin, readCatalogue } from "../../../src/domain/connector/catalogue.ts";
import { LOST, LOST_MS, perform } from "../../../src/features/approvals/duty.ts";
import { ConnectorServers, type Servers } from "../../../src/connectors/port.ts";
import { NOTHING_TO_SAVE } from "../../../src/domain/save/saved.ts";
import { WAIT_MS } from "../../../src/features/approvals/waiting-calls.ts";
import { CallApproval } from "../../../src/services/connectors/call-approval.ts";
import { callTool } from "../../../src/services/connectors/executor.ts";
import { CALL_LIMITS, type AgentResult } from "../../../src/services/connectors/executor-decision.ts";
import { Approvals, type Approval } from "../../../src/features/approvals/ports/approvals.ts";
import { Connectors } from "../../../src/store/ports/connectors/connectors.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { SimulatedSaves } from "../../twins/saves.ts";
import { advance } from "../../support/world/clock.ts";
import { inLife, projectWith, PROJECT, push, twins, type Services } from "../../support/world/service.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { NUMBERED } from "../../support/world/world.ts";

const URL = "https://mcp.example.com/mcp";
const entry = (url: string) => `
[[connectors]]
slug = "wiki"
kind = "mcp"
url = "${url}"
[[connectors.tools]]
match = "publish"
policy = "ask"
`;

/** A server that counts its calls. Null: it does not answer. */
class ScriptedServer {
  calls = 0;
  answer: string | null = "it is public";
  readonly service: Servers = {
    list: () => Effect.die(new Error("the catalogue is in the store")),
    document: () => Effect.die(new Error("the catalogue is in the store")),
    sessions: null,
    call: () =>
      Effect.suspend(() => {
        this.calls += 1;
        const { answer } = this;
        if (answer === null) return Effect.never;
        return Effect.succeed({ content: [{ type: "text", text: answer }], isError: false, status: 200 });
      }),
  };
}

const textOf = ({ content }: AgentResult): string =>
  content.map((part) => (part as { readonly text: string }).text).join("\n");

/** A project whose connector has one accepted tool, and a running session of it. @returns the session's id */
const begin = Effect.gen(function* () {
  yield* projectWith(entry(URL));
  const connectors = yield* Connectors;
  const catalogue = readCatalogue("wiki", [
    { name: "publish", description: "Publishes a page.", inputSchema: { type: "object" } },
  ]);
  const key = { projectId: PROJECT, slug: "wiki", url: URL };
  const pin = cataloguePin(catalogue);
  yield* connectors.saw(key, { catalogue, pin, protocol: "2025-11-25", at: 0 });
  yield* connectors.accept(key, { pin, userId: NUMBERED.userId, now: 0 });
  const sessionId = yield* admitSession({ ...NUMBERED });
  yield* (yield* Actors).wake("session", sessionId);
  yield* advance(5);
  expect((yield* (yield* Sessions).get(sessionId))?.status).toBe("running");
  return sessionId;
});

const caller = (sessionId: string) =>
  ({ projectId: PROJECT, sessionId, userId: NUMBERED.userId, startedBy: "user" }) as const;

const publish = (sessionId: string, tell: (ms: number) => void = () => undefined) =>
  callTool(caller(sessionId), { name: "wiki_publish", given: { page: "home" } }, (ms) =>
    Effect.sync(() => tell(ms)),
  );

const only = Effect.gen(function* () {
  const { items } = yield* (yield* Approvals).list(PROJECT, { limit: 9, cursor: null });
  const [one, ...more] = items;
  expect(more).toEqual([]);
  return one as Approval;
});

/** Calls, and goes away. @returns the approval's id */
const callAndLeave = Effect.fnUntraced(function* (sessionId: string) {
  const calling = yield* Effect.forkChild(publish(sessionId));
  yield* advance(1);
  yield* Fiber.interrupt(calling);
  return (yield* only).id;
});

const approve = Effect.fnUntraced(function* (id: string) {
  const moved = yield* (yield* Approvals).move(id, {
    type: "approval.given",
    by: NUMBERED.userId,
    now: 60_000,
  });
  expect(moved?.status).toBe("approved");
});

/** The texts of the service's messages in the conversation. */
const messages = Effect.fnUntraced(function* (sessionId: string) {
  const page = yield* (yield* Conversations).page(sessionId, { before: null, limit: 50 });
  const items = new Map([...(page?.items ?? []), ...(page?.queue ?? [])].map((item) => [item.id, item]));
  return [...items.values()]
    .filter(({ kind, author }) => kind === "message" && author?.kind === "service")
    .map(({ content }) => content.map((part) => ("text" in part ? part.text : "")).join(""));
});

/** Its saves take ten seconds. */
const slowSaves = new SimulatedSaves();
slowSaves.scripted = () => Effect.delay(Effect.succeed(NOTHING_TO_SAVE), "10 seconds");

/** Runs lives of the service, one after another, over one store and one server. */
const lives = (
  server: ScriptedServer,
  ...tests: readonly ((sessionId: string) => Effect.Effect<unknown, unknown, Services>)[]
) =>
  Effect.gen(function* () {
    const memory = Layer.succeedContext(
      yield* Layer.build(Layer.merge(Layer.fresh(twins), Layer.succeed(ConnectorServers, server.service))),
    ) as typeof twins;
    let sessionId: string | null = null;
    for (const test of tests)
      yield* inLife(
        memory,
        Effect.gen(function* () {
          sessionId ??= yield* begin;
          yield* test(sessionId);
        }),
        slowSaves,
      );
  });

describe("a call that waits for a person", () => {
  it.effect("tells its caller every ten seconds that it waits, and after two minutes what to do", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const told: number[] = [];
        const calling = yield* Effect.forkChild(publish(sessionId, (ms) => told.push(ms)));
        yield* advance(WAIT_MS / 1000 + 1);
        const result = yield* Fiber.join(calling);
        const { id } = yield* only;
        expect(told.length).toBeGreaterThanOrEqual(10);
        expect(told.every((ms, index) => ms >= (index + 1) * 10_000)).toBe(true);
        expect([result.isError, textOf(result)]).toEqual([false, expect.stringContaining(id) as string]);
        expect(textOf(yield* (yield* CallApproval).result(caller(sessionId), id))).toContain(
          "waits for a person's approval",
        );
        yield* approve(id);
        yield* advance(10);
        expect(server.calls).toBe(1);
        expect(yield* messages(sessionId)).toEqual([
          expect.stringContaining("The tool answered:\n\nit is public") as string,
        ]);
      }),
    );
  });

  it.effect("is made once and is one message, if the service was restarted between and after [K11]", () => {
    const server = new ScriptedServer();
    return lives(
      server,
      callAndLeave,
      () => Effect.flatMap(only, ({ id }) => approve(id)),
      () => advance(20),
      (sessionId) =>
        Effect.gen(function* () {
          yield* advance(20);
          expect(server.calls).toBe(1);
          expect(yield* only).toMatchObject({ status: "done", deliveredAt: expect.any(Number) as number });
          expect(yield* messages(sessionId)).toHaveLength(1);
        }),
    );
  });

  it.effect("is made once by two nodes that see the approval at the same moment [K11]", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const id = yield* callAndLeave(sessionId);
        yield* approve(id);
        yield* Effect.all([perform(id), perform(id), perform(id)], { concurrency: "unbounded" });
        yield* advance(20);
        expect(server.calls).toBe(1);
        expect(yield* messages(sessionId)).toHaveLength(1);
      }),
    );
  });

  it.effect("is unknown and not made again, if its node was killed after it began [K14]", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const approvals = yield* Approvals;
        const id = yield* callAndLeave(sessionId);
        yield* approve(id);
        // The node that began it is gone without a word.
        const begun = yield* approvals.begin(id, { limits: CALL_LIMITS, now: 60_000 });
        expect(begun).toBe("begun");
        yield* advance(60 + LOST_MS / 1000 + 10);
        expect(yield* only).toMatchObject({ status: "unknown", message: LOST });
        expect((yield* only).call).toMatchObject({ outcome: "unknown", message: LOST });
        expect(server.calls).toBe(0);
        expect(yield* messages(sessionId)).toEqual([
          expect.stringContaining("It is not called again") as string,
        ]);
      }),
    );
  });

  it.effect("is unknown and not made again, if the service stopped before the server answered [K14]", () => {
    const server = new ScriptedServer();
    server.answer = null;
    return lives(
      server,
      (sessionId) =>
        Effect.gen(function* () {
          yield* approve(yield* callAndLeave(sessionId));
          yield* advance(10);
          expect([server.calls, (yield* only).status]).toEqual([1, "calling"]);
        }),
      () =>
        Effect.gen(function* () {
          yield* advance(20);
          expect([server.calls, (yield* only).status]).toEqual([1, "unknown"]);
        }),
    );
  });

  it.effect("tells its agent the beginning of a long result, and how to read all of it", () => {
    const server = new ScriptedServer();
    const long = "x".repeat(64 * 1024);
    server.answer = `${long}THE END`;
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const id = yield* callAndLeave(sessionId);
        yield* approve(id);
        yield* advance(30);
        const [text = ""] = yield* messages(sessionId);
        expect(text).toContain(`${long}\n\n[cut. call_result with the id ${id} gives all of it]`);
        expect(textOf(yield* (yield* CallApproval).result(caller(sessionId), id))).toContain("THE END");
      }),
    );
  });

  it.effect("starts its session again for the message, if it was stopped because it was idle", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions;
        const id = yield* callAndLeave(sessionId);
        yield* (yield* Actors).session(sessionId, { type: "idle.elapsed" });
        yield* advance(30);
        expect(yield* sessions.get(sessionId)).toMatchObject({ status: "stopped", stopReason: "idle" });
        yield* approve(id);
        yield* advance(30);
        expect((yield* sessions.get(sessionId))?.status).toBe("running");
        expect(server.calls).toBe(1);
        expect(yield* messages(sessionId)).toHaveLength(1);
      }),
    );
  });

  it.effect("has its session stay if that is about to stop because it was idle", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions;
        const id = yield* callAndLeave(sessionId);
        const before = yield* sessions.get(sessionId);
        yield* (yield* Actors).session(sessionId, { type: "idle.elapsed" });
        yield* approve(id);
        yield* advance(30);
        const after = yield* sessions.get(sessionId);
        expect(after).toMatchObject({ status: "running", ending: null, sandboxId: before?.sandboxId });
        expect(yield* messages(sessionId)).toHaveLength(1);
      }),
    );
  });

  it.effect("does not start a session that a person stopped: the message waits there", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions;
        const id = yield* callAndLeave(sessionId);
        yield* (yield* Actors).session(sessionId, { type: "stop.requested" });
        yield* advance(30);
        yield* approve(id);
        yield* advance(30);
        expect(yield* sessions.get(sessionId)).toMatchObject({ status: "stopped", stopReason: "requested" });
        expect(yield* messages(sessionId)).toHaveLength(1);
      }),
    );
  });

  it.effect("is refused if its connector moved to another server meanwhile", () => {
    const server = new ScriptedServer();
    return lives(server, (sessionId) =>
      Effect.gen(function* () {
        const id = yield* callAndLeave(sessionId);
        yield* push(entry("https://other.example.com/mcp"));
        yield* approve(id);
        yield* advance(20);
        expect(yield* only).toMatchObject({ status: "refused", decidedBy: NUMBERED.userId });
        expect((yield* only).call).toMatchObject({ outcome: "denied" });
        expect(server.calls).toBe(0);
        expect(yield* messages(sessionId)).toEqual([
          expect.stringContaining("moved to another server") as string,
        ]);
      }),
    );
  });
});
