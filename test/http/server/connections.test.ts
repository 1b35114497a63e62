/** What becomes of a connection beside its answers: resets, senders that go on and on, the end of the service. */
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { HttpServerResponse } from "effect/http";
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { routeTable } from "../../../src/assembly/api.ts";
import { openListener, type Listener } from "../../../src/http/server.ts";

let scope: Scope.Closeable;
let listener: Listener;
let begun: PromiseWithResolvers<void>;
let release: PromiseWithResolvers<void>;

/** As the relay passes on a daemon's answer: before the body exists, and without an end to the connection. */
const early = (request: IncomingMessage, response: ServerResponse): boolean => {
  if (request.url !== "/early") return false;
  response.end("done");
  return true;
};

beforeEach(async () => {
  begun = Promise.withResolvers();
  release = Promise.withResolvers();
  scope = Effect.runSync(Scope.make());
  listener = await Effect.runPromise(
    Scope.provide(openListener({ host: "127.0.0.1", port: 0 }, routeTable), scope),
  );
  const slow = Effect.promise(async () => {
    begun.resolve();
    await release.promise;
    return HttpServerResponse.text("done");
  });
  await Effect.runPromise(
    listener
      .attach(slow, { request: early, upgrade: () => false })
      .pipe(Effect.provide(NodeHttpServer.layerHttpServices)),
  );
});
afterEach(() => {
  release.resolve();
  return Effect.runPromise(Scope.close(scope, Exit.void));
});

const open = async (): Promise<Socket> => {
  const socket = connect(listener.port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
};

const textOf = async (socket: Socket): Promise<string> => {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.on("error", () => undefined);
  await new Promise((resolve) => {
    socket.once("close", resolve);
  });
  return text;
};

const UPGRADE =
  "GET /x HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

describe("a connection", () => {
  it("that asks for an upgrade and is reset ends nothing but itself", async () => {
    for (let round = 0; round < 50; round += 1) {
      const socket = await open();
      socket.on("error", () => undefined);
      socket.write(UPGRADE);
      socket.resetAndDestroy();
    }
    // An unhandled error event would have ended this process, in which the listener runs.
    const socket = await open();
    socket.write(UPGRADE);
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 404 /);
  });

  it("that keeps its side open after a refused upgrade is closed", async () => {
    const socket = connect({ port: listener.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.write(UPGRADE);
    // A half that is only closed on our side would take these for ever.
    const going = setInterval(() => socket.write("x"), 20);
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 404 /);
    clearInterval(going);
  });

  it.each(["/early", "/routed"])(
    "that continues to send a body that %s never reads is ended [W18]",
    async (path) => {
      release.resolve();
      // A client that hears the end of the answer and goes on all the same.
      const socket = connect({ port: listener.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n`);
      const trickle = setInterval(() => socket.write("x"), 100);
      expect(await textOf(socket)).toContain("done");
      clearInterval(trickle);
    },
  );

  it("with a request in progress is answered before the listener has drained", async () => {
    const socket = await open();
    socket.write("GET /x HTTP/1.1\r\nhost: x\r\n\r\n");
    await begun.promise;
    const drained = Effect.runPromise(listener.drain);
    release.resolve();
    expect(await textOf(socket)).toContain("done");
    await drained;
    const late = connect(listener.port, "127.0.0.1");
    const [error] = (await once(late, "error")) as [Error & { code: string }];
    expect(error.code).toBe("ECONNREFUSED");
  });
});
