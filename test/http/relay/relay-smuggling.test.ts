/** The same at the service's relay: what stands where the daemon would sees nothing, or one whole request. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import { HttpServerResponse } from "effect/http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { routeTable } from "../../../src/assembly/api.ts";
import { openListener } from "../../../src/http/server.ts";
import { Activity } from "../../../src/services/sessions/activity.ts";
import { makeRelay } from "../../../src/http/relay/relay.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { BROKEN_BODIES, bytesOf, REFRAMED, REFUSED } from "../../proxy/smuggling-cases.ts";
import { recordedActivity } from "../../support/service/activity.ts";
import { exchange } from "../../support/service/raw-http.ts";
import { Recording, requestsIn, OK } from "../../support/servers/recording.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { relayParts } from "./relay-parts.ts";
import { makeProject, runSession } from "../../support/service/requests.ts";

let service: TestService;
let daemon: Recording;
let port = 0;
let target = "";
const scope = Effect.runSync(Scope.make());
const link = () => Effect.sync(() => ({ kind: "url" as const, url: `http://127.0.0.1:${daemon.port}` }));

beforeAll(async () => {
  service = await shareService();
  daemon = await Recording.start();
  const pid = await makeProject(service);
  target = `/v1/projects/${pid}/sessions/${await runSession(service, pid)}/runtime/own`;
  const routes = await service.inside(
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const parts = yield* Scope.provide(Layer.build(relayParts), scope);
      return yield* makeRelay.pipe(
        Effect.provideContext(parts),
        Effect.provideService(SandboxProvider, { ...provider, link }),
        Effect.provideService(Activity, recordedActivity()),
        Scope.provide(scope),
      );
    }),
  );
  const listener = await Effect.runPromise(
    Scope.provide(openListener({ host: "127.0.0.1", port: 0 }, routeTable), scope),
  );
  await Effect.runPromise(
    listener
      .attach(Effect.succeed(HttpServerResponse.text("the API")), routes)
      .pipe(Effect.provide(NodeHttpServer.layerHttpServices)),
  );
  ({ port } = listener);
});
beforeEach(async () => {
  for (const socket of daemon.sockets.splice(0)) {
    socket.destroy();
    if (!socket.closed) await once(socket, "close");
  }
  daemon.connections.length = 0;
  daemon.onBytes = (socket, soFar) => {
    if (soFar.includes("\r\n\r\n")) socket.write(OK);
  };
});
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  await daemon.stop();
  await service.close();
});

const credential = () => `Authorization: Bearer ${service.token}`;
const last = () => `GET ${target}/last HTTP/1.1\r\nHost: x\r\n${credential()}\r\nConnection: close\r\n\r\n`;

describe("a daemon behind the relay", () => {
  it.each(REFUSED)("sees no part of $name, nor of what follows it [X14, W20, W21]", async (smuggling) => {
    const answer = await exchange(port, bytesOf(smuggling, { target, credential: credential() }) + last());
    // What follows may be refused once more; it is not answered as the request it looks like.
    for (const status of answer.match(/HTTP\/1\.1 \d+/g) ?? [answer])
      expect(status).toMatch(/^HTTP\/1\.1 40[04]$/);
    expect(daemon.bytes).toBe("");
  });

  it.each(BROKEN_BODIES)("sees no whole request with $name [X14, W20]", async (smuggling) => {
    daemon.onBytes = () => undefined;
    const broken = { target: target.replace(/own$/, "broken"), credential: credential() };
    await exchange(port, bytesOf(smuggling, broken) + last());
    expect(daemon.bytes).not.toMatch(/hidden|last|^0\r\n/m);
    if (daemon.bytes !== "") expect(() => requestsIn(daemon.bytes)).toThrow(/chunks without an end/);
  });

  it.each(REFRAMED)("sees exactly one request of $name [X14]", async ({ comes, ...smuggling }) => {
    const closing = `${credential()}\r\nConnection: close`;
    expect(await exchange(port, bytesOf(smuggling, { target, credential: closing }))).toMatch(
      /^HTTP\/1\.1 200 /,
    );
    // The head of a broken request may come later than the answer to it, in the middle of another test.
    const others = daemon.connections.filter((bytes) => !bytes.startsWith("POST /broken HTTP/1.1\r\n"));
    const [request, ...more] = requestsIn(others.join(""));
    expect([request?.head.split("\r\n")[0], request?.body, more]).toEqual(["POST /own HTTP/1.1", comes, []]);
    expect(request?.head).not.toContain(service.token);
  });

  it("sees no request in the body of a refused request [X14]", async () => {
    const hidden = last().replace("/last", "/hidden");
    const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer platform_pat_${randomUUID()}\r\n`;
    const answer = await exchange(port, `${head}Content-Length: ${hidden.length}\r\n\r\n${hidden}${last()}`);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(daemon.bytes).not.toContain("hidden");
  });
});
