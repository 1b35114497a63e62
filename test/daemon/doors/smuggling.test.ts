/** Framing that two parsers could read in two ways, at the daemon: a bare upstream sees nothing, or one whole request. */
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BROKEN_BODIES, bytesOf, REFRAMED, REFUSED } from "../../proxy/smuggling-cases.ts";
import { Recording, requestsIn } from "../../support/servers/recording.ts";
import { contextHeader, Served } from "../support/served.ts";

let served: Served;
let upstream: Recording;
beforeEach(async () => {
  served = await Served.start((_, response) => response.end("runtime"));
  upstream = await Recording.start();
});
afterEach(async () => {
  await served.stop();
  await upstream.stop();
});

const target = () => `/proxy/${upstream.port}/own`;
const credential = () => `X-Platform-User-Context: ${contextHeader()}`;

/** Writes the bytes, then another good request that ends the connection, and reads until it ends. */
const send = (bytes: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(served.socketPath);
    let got = "";
    socket.on("data", (chunk) => (got += chunk.toString("latin1")));
    socket.on("error", () => resolve(got));
    socket.on("close", () => resolve(got));
    socket.write(bytes);
  });

const last = () =>
  `GET /proxy/${upstream.port}/last HTTP/1.1\r\nHost: x\r\n${credential()}\r\nConnection: close\r\n\r\n`;

describe("an upstream", () => {
  test.each(REFUSED)("sees no part of $name, nor what follows it [X14, W20]", async (smuggling) => {
    for (const behind of ["", last()]) {
      const bytes = bytesOf(smuggling, { target: target(), credential: credential() });
      const answer = await send(bytes + behind);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
      expect(upstream.bytes).toBe("");
    }
  });

  test.each(BROKEN_BODIES)(
    "sees no whole request with $name, nor what follows it [X14, W20]",
    async (smuggling) => {
      upstream.onBytes = () => undefined;
      await send(bytesOf(smuggling, { target: target(), credential: credential() }) + last());
      expect(upstream.bytes).not.toMatch(/hidden|last|^0\r\n/m);
      if (upstream.bytes !== "") expect(() => requestsIn(upstream.bytes)).toThrow(/chunks without an end/);
    },
  );

  test.each(REFRAMED)(
    "sees exactly one request of $name, framed by the daemon [X14]",
    async ({ comes, ...smuggling }) => {
      const bytes = bytesOf(smuggling, {
        target: target(),
        credential: `${credential()}\r\nConnection: close`,
      });
      expect(await send(bytes)).toMatch(/^HTTP\/1\.1 200 /);
      const [request, ...more] = requestsIn(upstream.bytes);
      expect([request?.head.split("\r\n")[0], request?.body, more]).toEqual([
        "POST /own HTTP/1.1",
        comes,
        [],
      ]);
    },
  );

  test("sees each of two requests on one connection once, and none without a context after one with a context [X14]", async () => {
    const first = `GET ${target()} HTTP/1.1\r\nHost: x\r\n${credential()}\r\n\r\n`;
    const bare = `GET ${target()}/bare HTTP/1.1\r\nHost: x\r\n\r\n`;
    const answer = await send(first + bare + last());
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 401", "HTTP/1.1 200"]);
    const seen = upstream.connections.flatMap(requestsIn).map(({ head }) => head.split("\r\n")[0]);
    expect(seen.toSorted()).toEqual(["GET /last HTTP/1.1", "GET /own HTTP/1.1"]);
  });

  test("sees no request in the body of a refused request [X14]", async () => {
    const hidden = last().replace("/last", "/hidden");
    const refused = `POST ${target()} HTTP/1.1\r\nHost: x\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`;
    const answer = await send(refused + last());
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(upstream.bytes).not.toContain("hidden");
  });

  test("sees no h2c with prior knowledge, no TRACE and no CONNECT [X08]", async () => {
    expect(await send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
    const trace = `TRACE ${target()} HTTP/1.1\r\nHost: x\r\n${credential()}\r\nConnection: close\r\n\r\n`;
    expect(await send(trace)).toMatch(/^HTTP\/1\.1 405 /);
    const tunnel = `CONNECT 127.0.0.1:${upstream.port} HTTP/1.1\r\nHost: x\r\n${credential()}\r\n\r\n`;
    expect(await send(tunnel)).toMatch(/^HTTP\/1\.1 405 /);
    expect(upstream.bytes).toBe("");
  });
});
