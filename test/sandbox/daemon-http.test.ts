/** What the service makes of a daemon's answers. Real daemons answer in test/e2e. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import { afterEach, expect, test } from "vitest";
import { daemonHttp } from "../../src/sandbox/daemon-http.ts";
import { DaemonClient, type DaemonUnreachable } from "../../src/sandbox/daemon.ts";

let stop: () => void = () => undefined;
afterEach(() => stop());

const CHANGE = { revision: "7", env: { A: "a canary of a value", B: null } };

/** Sends the change to a daemon that answers so. */
const change = async (answer: RequestListener) => {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  stop = () => {
    server.close();
    server.closeAllConnections();
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sent = Effect.flatMap(DaemonClient, (client) =>
    client.env({ kind: "url", url }, "a.context", CHANGE),
  );
  return await Effect.runPromise(Effect.result(Effect.provide(sent, daemonHttp)));
};

const failure = (error: unknown): string => (error as { failure: DaemonUnreachable }).failure.message;

test("sends the change with its context, and decodes the daemon's answer", async () => {
  const seen: unknown[] = [];
  const said = { changed: ["A", "B"], revision: "7", restarted: true, turn_interrupted: false };
  const result = await change((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += String(chunk)));
    request.on("end", () => {
      const { method, url, headers } = request;
      seen.push({
        method,
        url,
        context: headers["x-platform-user-context"],
        body: JSON.parse(body) as unknown,
      });
      response.end(JSON.stringify(said));
    });
  });
  expect(result).toMatchObject({ success: said });
  expect(seen).toEqual([
    { method: "POST", url: "/platform/env", context: "a.context", body: { ...CHANGE, after_turn: true } },
  ]);
});

test.each([
  [400, '{"code":"reserved_name","error":"a canary of a value"}', "the daemon answered 400 reserved_name"],
  [502, '{"code":"runtime_failed"}', "the daemon answered 502 runtime_failed"],
  [409, '{"code":"turn_in_progress"}', "the daemon answered 409 turn_in_progress"],
  [404, "no JSON: a canary of a value", "the daemon answered 404"],
  [500, '{"code":"a canary of a value"}', "the daemon answered 500"],
])("recognises a refusal by its code alone: %d %s [S06]", async (status, body, message) => {
  const result = await change((request, response) => {
    request.resume();
    response.writeHead(status).end(body);
  });
  expect(failure(result)).toBe(message);
});

test("does not accept an answer of another shape, a broken one, or a missing one", async () => {
  const answers: RequestListener[] = [
    (_, response) => response.end('{"changed": 7}'),
    (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => response.destroy());
    },
    (request) => request.socket.destroy(),
    (_, response) => response.end(" ".repeat(1024 * 1024 + 1)),
  ];
  for (const answer of answers) {
    const result = await change(answer);
    stop();
    expect(result._tag).toBe("Failure");
    expect(failure(result)).not.toContain("canary");
  }
});
