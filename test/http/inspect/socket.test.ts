/** The WebSocket of the inspector, read by the client of `@statelyai/inspect` and by programs that are not welcome. */
import { request } from "node:http";
import { createWebSocketReceiver, type StatelyInspectionEvent } from "@statelyai/inspect";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect, vi } from "vitest";
import { WebSocket } from "ws";
import { READERS_MAX } from "../../../src/http/inspect/feed.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { openPage, row, step } from "./readers.ts";

const CANARY = "canary-7f3a";

/** What the package's own client gets from an address. It has no close of its own: the page closes the connection. */
const received = (server: string) => {
  const records: StatelyInspectionEvent[] = [];
  createWebSocketReceiver({ server }).subscribe((record) => void records.push(record));
  return records;
};

const eventually = (check: () => void) =>
  Effect.promise(async () => {
    await vi.waitFor(check, { timeout: WAIT_MS, interval: 10 });
  });

/** A connection of another program: whether it was opened, or the status of the refusal. */
const dialled = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(
    () =>
      new Promise<{ readonly status: number; readonly socket: WebSocket }>((resolve) => {
        const socket = new WebSocket(url, { headers });
        socket.on("error", () => undefined);
        socket.on("open", () => resolve({ status: 101, socket }));
        socket.on("unexpected-response", (_, { statusCode = 0 }) => resolve({ status: statusCode, socket }));
      }),
  );

const got = (url: string, path: string, host?: string) =>
  Effect.promise(
    () =>
      new Promise<{ status: number; body: string }>((resolve) => {
        const headers = host === undefined ? {} : { host };
        request(new URL(path, url), { headers }, (response) => {
          let body = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        }).end();
      }),
  );

describe("the inspector's WebSocket", () => {
  it.live(
    "gives the client of the package the history, the present and each step, without secrets [I16]",
    () =>
      Effect.gen(function* () {
        const { socketUrl, inspect } = yield* openPage([row({ detail: CANARY })]);
        yield* inspect(step({ snapshot: { state: "running", context: { prompt: CANARY } } }));
        const records = received(socketUrl);
        yield* eventually(() => expect(records).toHaveLength(4));
        const lost = Object.assign(
          { type: "sandbox.lost" },
          { failure: { code: "sandbox_lost", message: CANARY } },
        );
        yield* inspect(step({ event: lost, snapshot: { state: "failed", context: { prompt: CANARY } } }));
        yield* eventually(() => expect(records).toHaveLength(6));
        expect(records).toMatchObject([
          { type: "@xstate.actor", name: "session:s1", snapshot: { value: "provisioning" } },
          { type: "@xstate.event", event: { type: "sandbox.live" } },
          { type: "@xstate.snapshot", snapshot: { value: "running" } },
          { type: "@xstate.snapshot", snapshot: { value: "running" }, event: { type: "memory.entered" } },
          { type: "@xstate.event", event: { type: "sandbox.lost", failure: { code: "sandbox_lost" } } },
          { type: "@xstate.snapshot", snapshot: { value: "failed", status: "active" } },
        ]);
        const [actor] = records;
        const definition = actor?.type === "@xstate.actor" ? JSON.parse(actor.definition ?? "") : null;
        expect(Object.keys(definition.states)).toEqual(["provisioning", "running", "stopped", "failed"]);
        expect(JSON.stringify(records)).not.toContain(CANARY);
      }),
  );

  it.live("is refused to pages of other origins and under other host names [I16]", () =>
    Effect.gen(function* () {
      const { url, socketUrl } = yield* openPage();
      const own = new URL(url).host;
      const refused = [
        { origin: "https://evil.example" },
        { origin: "https://stately.ai" },
        { origin: `https://${own}` },
        { origin: "null" },
        { host: "evil.example" },
        { host: "evil.example", origin: "http://evil.example" },
      ];
      const answers = yield* Effect.forEach(refused, (headers) => dialled(socketUrl, headers));
      expect(answers.map(({ status }) => status)).toEqual(refused.map(() => 403));
      expect((yield* dialled(`${socketUrl}other`)).status).toBe(404);
      expect((yield* dialled(socketUrl, { origin: `http://${own}` })).status).toBe(101);
      expect((yield* dialled(socketUrl)).status).toBe(101);
    }),
  );

  it.live("takes a bounded number of readers, and another one when one has left", () =>
    Effect.gen(function* () {
      const { socketUrl } = yield* openPage();
      const all = Array.from({ length: READERS_MAX }, () => dialled(socketUrl));
      const [first] = yield* Effect.all(all, { concurrency: "unbounded" });
      expect((yield* dialled(socketUrl)).status).toBe(503);
      first?.socket.close();
      yield* Effect.promise(async () => {
        await vi.waitFor(async () => {
          const { status, socket } = await Effect.runPromise(dialled(socketUrl));
          socket.close();
          expect(status).toBe(101);
        }, WAIT_MS);
      });
    }),
  );

  it.live("hears nothing that a reader says, and disconnects one that says much", () =>
    Effect.gen(function* () {
      const { socketUrl, inspect } = yield* openPage();
      const { socket } = yield* dialled(socketUrl);
      const frames: string[] = [];
      socket.on("message", (frame: Buffer) => void frames.push(frame.toString()));
      socket.send(JSON.stringify({ type: "@xstate.event" }));
      yield* inspect(step({}));
      yield* eventually(() => expect(frames).toHaveLength(1));
      const closed = new Promise((resolve) => void socket.on("close", resolve));
      socket.send("x".repeat(2_000));
      yield* Effect.promise(() => closed);
    }),
  );
});

describe("the inspector's page", () => {
  it.live("is available for loopback's own names alone", () =>
    Effect.gen(function* () {
      const { url } = yield* openPage();
      expect(new URL(url).hostname).toBe("127.0.0.1");
      expect((yield* got(url, "/")).body).toContain("<title>Live actors</title>");
      expect((yield* got(url, "/inspect.js")).status).toBe(200);
      expect((yield* got(url, "/", "evil.example")).status).toBe(403);
      expect((yield* got(url, "/other")).status).toBe(404);
    }),
  );

  it.live("leaves no listener and no connection behind", () =>
    Effect.gen(function* () {
      const { url, socket } = yield* Effect.scoped(
        Effect.gen(function* () {
          const page = yield* openPage();
          return { ...page, ...(yield* dialled(page.socketUrl)) };
        }),
      );
      yield* eventually(() => expect(socket.readyState).toBe(WebSocket.CLOSED));
      const answer = yield* Effect.exit(Effect.tryPromise(() => fetch(url)));
      expect(answer._tag).toBe("Failure");
    }),
  );
});
