import { Agent, request as startRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { HttpServerRequest, HttpServerResponse } from "effect/http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { routeTable } from "../../../src/assembly/api.ts";
import { openListener, type Listener } from "../../../src/http/server.ts";

const AT_ONCE = 3;
const BEGINNING = new TextEncoder().encode("begun");

let scope: Scope.Closeable;
let listener: Listener;
/** Requests that the app has taken and not answered, oldest first. */
let taken: PromiseWithResolvers<void>[];
let arrived: () => void;
const agent = new Agent({ keepAlive: true });

beforeEach(async () => {
  taken = [];
  arrived = () => undefined;
  scope = Effect.runSync(Scope.make());
  listener = await Effect.runPromise(
    Scope.provide(openListener({ host: "127.0.0.1", port: 0, requestsAtOnce: AT_ONCE }, routeTable), scope),
  );
  const app = Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest;
    if (url === "/stream")
      return HttpServerResponse.stream(Stream.concat(Stream.make(BEGINNING), Stream.never));
    if (url === "/healthz" || url.startsWith("/v1/git/")) return HttpServerResponse.text("well");
    const release = Promise.withResolvers<void>();
    taken.push(release);
    arrived();
    yield* Effect.promise(() => release.promise);
    return HttpServerResponse.text("done");
  });
  await Effect.runPromise(
    listener
      .attach(app, { request: () => false, upgrade: () => false })
      .pipe(Effect.provide(NodeHttpServer.layerHttpServices)),
  );
});
afterEach(async () => {
  for (const { resolve } of taken) resolve();
  agent.destroy();
  await Effect.runPromise(Scope.close(scope, Exit.void));
});

const send = (path: string) => {
  const request = startRequest({ host: "127.0.0.1", port: listener.port, path, agent });
  const answer = once(request, "response").then(([response]) => response as IncomingMessage);
  // Some are left open until the test is over.
  answer.catch(() => undefined);
  request.end();
  return { request, answer };
};

const read = async (response: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return text;
};

/** Sends requests until the app holds so many. */
const fill = async (count: number) => {
  const sent: ReturnType<typeof send>[] = [];
  while (taken.length < count) {
    const next = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    sent.push(send("/work"));
    // eslint-disable-next-line no-await-in-loop -- one after the other
    await next;
  }
  return sent;
};

const statusOf = async (path: string): Promise<number | undefined> => {
  const response = await send(path).answer;
  response.resume();
  return response.statusCode;
};

describe("requests beyond the concurrency limit", () => {
  it("are refused at once with 503 and Retry-After, and accepted again after an answer", async () => {
    const [first] = await fill(AT_ONCE);
    const refused = await send("/work").answer;
    expect(refused.statusCode).toBe(503);
    expect(refused.headers["retry-after"]).toMatch(/^\d+$/);
    expect(JSON.parse(await read(refused))).toEqual({
      error: "The service has too many open requests. Try again in a moment.",
      code: "busy",
    });
    taken[0]?.resolve();
    expect(await read(await (first ?? send("/none")).answer)).toBe("done");
    const next = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    send("/work");
    await next;
    expect(taken).toHaveLength(AT_ONCE + 1);
  });

  it("do not block health requests or git, which has its own limits", async () => {
    await fill(AT_ONCE);
    expect(await statusOf("/healthz")).toBe(200);
    expect(await statusOf("/v1/git/project.git/info/refs?service=git-upload-pack")).toBe(200);
  });

  it("are not blocked by streams whose answer has begun", async () => {
    for (let count = 0; count < AT_ONCE; count += 1) {
      // eslint-disable-next-line no-await-in-loop -- all of them stay open
      expect((await send("/stream").answer).statusCode).toBe(200);
    }
    await fill(AT_ONCE);
    expect(await statusOf("/work")).toBe(503);
  });

  it("get the place of a client that has left", async () => {
    const [first] = await fill(AT_ONCE);
    first?.request.destroy();
    await expect.poll(() => statusOf("/healthz")).toBe(200);
    await expect
      .poll(() => {
        send("/work");
        return taken.length;
      })
      .toBeGreaterThan(AT_ONCE);
  });
});
