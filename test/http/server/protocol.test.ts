/** Requests that no HTTP client sends, on bare connections to the service's own listener (threats.md W18, W20, W21). */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exchange, parseAnswer, type RawAnswer } from "../../support/service/raw-http.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { fields, hmac, listOf, makeHookProject } from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({}, { bodyTime: "500 millis" });
  pid = await makeHookProject(service);
});
afterAll(() => service.close());

const send = async (...lines: readonly string[]): Promise<RawAnswer> =>
  parseAnswer(await exchange(service.port, lines.join("\r\n")));

const post = () => `POST /v1/webhooks/projects/${pid}/push HTTP/1.1`;
const signature = (body: string) => `x-platform-signature: ${hmac(body)}`;
const fires = async () => listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires").length;

const codeOf = ({ headers, body }: RawAnswer): unknown => {
  expect(headers.get("content-type")).toBe("application/json");
  expect(headers.get("connection")).toBe("close");
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  const { error, code, ...more } = JSON.parse(body) as { error: string; code: string };
  expect([more, error.endsWith(".")]).toEqual([{}, true]);
  return code;
};

describe("framing that two parsers could read in two ways", () => {
  it.each([
    ["content-length: 2", "transfer-encoding: chunked"],
    ["content-length: 2", "content-length: 2"],
    ["content-length: 2", "content-length: 3"],
    ["content-length: 2, 2"],
    ["transfer-encoding: xchunked"],
    ["transfer-encoding: chunked, identity"],
    ["transfer-encoding: identity, chunked, chunked"],
    ["content-length: +2"],
    ["content-length: 0x2"],
    ["content-length: -2"],
    ["content-length : 2"],
    ["content-length: 2", "x-folded: a", " b: c"],
    ["content-length: 2", "x-nul: a\0b"],
    ["content-length: 2", "x-cr: a\rb"],
    ["content-length: 2", "x y: a"],
    ["content-length: 2", ": a"],
  ])("%j is 400, and nothing fires [W20]", async (...headers) => {
    const answer = await send(post(), "host: h", signature("{}"), ...headers, "", "{}");
    expect([answer.status, codeOf(answer)]).toEqual([400, "malformed_request"]);
    expect(await fires()).toBe(0);
  });

  it("lines that end in a bare LF are 400 [W20]", async () => {
    const text = [post(), "host: h", signature("{}"), "content-length: 2", "", "{}"].join("\n");
    const answer = parseAnswer(await exchange(service.port, text));
    expect([answer.status, await fires()]).toEqual([400, 0]);
  });

  it.each(["GET / HTTP/2.0", "GET /", "hello", "G@T / HTTP/1.1", "\x16\x03\x01\x02\0\x01"])(
    "the first line %j is 400",
    async (line) => {
      const answer = await send(line, "host: h", "", "");
      expect([answer.status, codeOf(answer)]).toEqual([400, "malformed_request"]);
    },
  );

  it("headers of more than 16 KiB are 431", async () => {
    const answer = await send("GET /healthz HTTP/1.1", "host: h", `x: ${"a".repeat(20_000)}`, "", "");
    expect([answer.status, codeOf(answer)]).toEqual([431, "headers_too_large"]);
  });
});

describe("a request that Node's parser accepts", () => {
  it.each([
    ["two Host headers", "GET /healthz HTTP/1.1", "host: a", "host: b"],
    ["two equal Host headers", "GET /healthz HTTP/1.1", "host: a", "Host: a"],
    ["chunks in HTTP/1.0", "POST /healthz HTTP/1.0", "transfer-encoding: chunked"],
    ["a target with a host", "GET http://169.254.169.254/healthz HTTP/1.1", "host: a"],
    ["a target that is a star", "OPTIONS * HTTP/1.1", "host: a"],
  ])("is still refused: %s [W21]", async (_, ...lines) => {
    const answer = await send(...lines, "", "0\r\n\r\n");
    expect([answer.status, codeOf(answer)]).toEqual([400, "malformed_request"]);
  });

  it("without a Host header in HTTP/1.1 is 400", async () => {
    expect((await send("GET /healthz HTTP/1.1", "", "")).status).toBe(400);
  });

  it("CONNECT and TRACE are not routed", async () => {
    const connected = await send("CONNECT 169.254.169.254:80 HTTP/1.1", "host: a", "", "");
    expect([0, 400, 404, 405]).toContain(connected.status);
    const traced = await send(
      "TRACE /healthz HTTP/1.1",
      "host: a",
      "x-secret: s",
      "connection: close",
      "",
      "",
    );
    expect([400, 404, 405]).toContain(traced.status);
    expect(traced.body).not.toContain("x-secret");
  });

  it("an upgrade to an unsupported protocol is refused", async () => {
    const answer = await send(
      "GET /v1/me HTTP/1.1",
      "host: a",
      "upgrade: websocket",
      "connection: upgrade",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      "",
      "",
    );
    expect([answer.status, codeOf(answer)]).toEqual([404, "not_found"]);
  });
});

const complete = async (bytes: string): Promise<RawAnswer> =>
  parseAnswer(await exchange(service.port, bytes));

const MIB = 1024 * 1024;

const announce = (length: number): string =>
  `${post()}\r\nhost: h\r\n${signature("{}")}\r\ncontent-length: ${length}\r\n\r\n`;

describe("webhook bodies in transfer", () => {
  it("have a common limit: 32 MiB an address, refused when they are over it, freed when they end [W17]", async () => {
    const stalled = announce(24 * MIB) + "x".repeat(20 * MIB);
    const both = async () =>
      (await Promise.all([complete(stalled), complete(stalled)])).toSorted((a, b) => a.status - b.status);
    // On a busy machine the first may have ended before the second has sent as much.
    await expect
      .poll(
        async () => (await both()).map(({ status, headers }) => [status, headers.get("retry-after") ?? null]),
        { timeout: WAIT_MS },
      )
      .toEqual([
        [408, null],
        [503, expect.stringMatching(/^\d+$/)],
      ]);
    expect((await complete(stalled)).status).toBe(408);
  });

  it("that were only announced block no other [W17, W18]", async () => {
    const announced = Array.from({ length: 12 }, () => complete(announce(25 * MIB)));
    const body = "{}";
    const sent = `${post()}\r\nhost: h\r\nconnection: close\r\n${signature(body)}\r\ncontent-length: 2\r\n\r\n${body}`;
    expect((await complete(sent)).status).toBe(202);
    expect(new Set((await Promise.all(announced)).map(({ status }) => status))).toEqual(new Set([408]));
  });

  it("of unknown length count as they arrive: many small ones pass at once [W17]", async () => {
    const chunked = `${post()}\r\nhost: h\r\nconnection: close\r\n${signature("{}")}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () =>
        parseAnswer(await exchange(service.port, `${chunked}2\r\n{}\r\n0\r\n\r\n`)),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 202));
  });
});

describe("a relayed upgrade", () => {
  it("without a token is 401 before a byte goes further [X09]", async () => {
    const target = `/v1/projects/${pid}/sessions/${pid}/runtime/socket`;
    const answer = await send(
      `GET ${target} HTTP/1.1`,
      "host: a",
      "upgrade: websocket",
      "connection: upgrade",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      "",
      "",
    );
    expect([answer.status, codeOf(answer)]).toEqual([401, "unauthorized"]);
  });
});

describe("a webhook's body that does not match its announcement", () => {
  it("and stops before its length is cut off, and fires nothing [W18]", async () => {
    const before = await fires();
    const answer = await complete(
      `${post()}\r\nhost: h\r\n${signature("{}")}\r\ncontent-length: 9\r\n\r\n{}`,
    );
    expect([answer.status, codeOf(answer), await fires()]).toEqual([408, "body_timeout", before]);
  });

  it("and is JSON without an end is also cut off [W18]", async () => {
    const head = `POST /v1/projects HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${service.token}\r\n`;
    const answer = await complete(`${head}content-type: application/json\r\ncontent-length: 99\r\n\r\n{`);
    expect([answer.status, codeOf(answer)]).toEqual([408, "body_timeout"]);
  });

  it("and is closed early fires nothing [W18]", async () => {
    const before = await fires();
    await new Promise<void>((resolve) => {
      const socket = connect(service.port, "127.0.0.1", () => {
        socket.end(`${post()}\r\nhost: h\r\n${signature("{}")}\r\ncontent-length: 9\r\n\r\n{}`);
      });
      socket.resume().on("close", () => resolve());
    });
    expect(await fires()).toBe(before);
  });

  it("and has a broken chunk ends the connection, and fires nothing [W18]", async () => {
    const before = await fires();
    const head = `${post()}\r\nhost: h\r\n${signature("{}")}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const answer = await complete(`${head}2\r\n{}\r\nnot-a-size\r\n`);
    expect(answer.status).toBe(400);
    expect(await fires()).toBe(before);
  });

  it("and disconnects right after its end leaves a whole fire or none [W40]", async () => {
    for (let round = 0; round < 20; round += 1) {
      await new Promise<void>((resolve) => {
        const socket = connect(service.port, "127.0.0.1", () => {
          const head = `${post()}\r\nhost: h\r\n${signature("{}")}\r\nx-platform-delivery: gone-${round}\r\n`;
          socket.write(`${head}content-length: 2\r\n\r\n{}`, () => socket.destroy());
        });
        socket.on("close", () => resolve());
      });
    }
    const list = listOf(await service.request("GET", `/v1/projects/${pid}/fires?limit=200`), "fires");
    const gone = list.filter(({ delivery_id: id }) => String(id).startsWith("gone-"));
    for (const fire of gone) {
      expect(fire["status"]).toBe("fired");
      const session = await service.request("GET", `/v1/projects/${pid}/sessions/${fire["session_id"]}`);
      expect(fields(session)["fire_id"]).toBe(fire["id"]);
    }
    expect(new Set(gone.map(({ delivery_id: id }) => id)).size).toBe(gone.length);
  });
});
