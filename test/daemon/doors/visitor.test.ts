import { createServer, type IncomingHttpHeaders } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Served } from "../support/served.ts";

let served: Served;
/** The headers that the app behind the port, and the agent runtime, received last. */
let told: IncomingHttpHeaders = {};
let port = 0;
beforeEach(async () => {
  const app = createServer((request, response) => {
    told = request.headers;
    response.end();
  });
  served = await Served.start((request, response) => {
    told = request.headers;
    response.end();
  });
  port = await served.upstream(app);
});
afterEach(() => served.stop());

const SESSION = "0192d3a4-0000-7000-8000-0000000000aa";
const from = (host: string, proto = "http") => ({
  "x-forwarded-for": "192.0.2.7",
  "x-forwarded-host": host,
  "x-forwarded-proto": proto,
});

describe("an app behind a port", () => {
  test("hears the browser's address only from the service, which alone signs contexts", async () => {
    const headers = from(`p${port}-${SESSION}.preview.example.com`, "https");
    await served.ask(`/proxy/${port}/`, { headers });
    expect(told).toMatchObject(headers);
  });

  test("sees the host that the browser asked for if it is below localhost", async () => {
    const host = `p${port}-${SESSION}.localhost:8080`;
    await served.ask(`/proxy/${port}/`, { headers: from(host) });
    expect(told.host).toBe(host);
  });

  test.each([
    "p1.preview.example.com",
    "localhost:8080",
    "evil.example",
    "x.localhost.",
    "x.localhost.evil.example",
    "x.localhost:8080, y.localhost",
    "x@y.localhost",
    ".localhost",
  ])("sees its own address if the host is another one: %s [X17]", async (host) => {
    await served.ask(`/proxy/${port}/`, { headers: from(host) });
    expect(told.host).toBe(`127.0.0.1:${port}`);
  });

  test("sees its own address if the service sent none", async () => {
    await served.ask(`/proxy/${port}/`, { headers: { "x-forwarded-host": "x.localhost" } });
    expect(told).toMatchObject({ host: `127.0.0.1:${port}`, "x-forwarded-for": "unknown" });
  });
});

test("the agent runtime does not learn who asks", async () => {
  await served.ask("/session", { headers: from("x.localhost") });
  expect(told).toMatchObject({ host: expect.stringMatching(/^127\.0\.0\.1:/), "x-forwarded-for": "unknown" });
});
