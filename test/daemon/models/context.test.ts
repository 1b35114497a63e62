import { createHmac } from "node:crypto";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BAD_HANDSHAKES } from "../../proxy/handshake-cases.ts";
import { parseAnswer } from "../../support/service/raw-http.ts";
import { SERVICE_ROLE, signUserContext } from "../../../src/domain/sandbox/user-context.ts";
import {
  BLOCKED_PORT,
  contextHeader,
  Served,
  SESSION_ID,
  signal,
  TOKEN,
  type Answer,
} from "../support/served.ts";

let served: Served;
/** What reached the agent runtime. */
let reached: IncomingMessage[];
beforeEach(async () => {
  reached = [];
  served = await Served.start((request, response) => {
    reached.push(request);
    response.end("runtime");
  });
});
afterEach(() => served.stop());

const reasonOf = ({ response, body }: Answer): string => {
  const { code, details } = JSON.parse(body) as { code: string; details?: { reason: string } };
  return `${response.statusCode} ${code} ${details?.reason ?? ""}`.trim();
};
const withContext = (value: string): Record<string, string> => ({ "x-platform-user-context": value });
const signed = (change: { token?: string; sessionId?: string; role?: string; ageS?: number } = {}): string =>
  signUserContext(
    {
      userId: "user-1",
      sessionId: change.sessionId ?? SESSION_ID,
      role: change.role ?? "owner",
      // oxlint-disable-next-line no-restricted-properties -- the server under test reads the machine's clock
      nowMs: Date.now() - (change.ageS ?? 0) * 1000,
    },
    change.token ?? TOKEN,
  );

/** Signed as it stands: what our own signer would never write. */
const signedText = (text: string): string => {
  const payload = Buffer.from(text).toString("base64url");
  return `${payload}.${createHmac("sha256", TOKEN).update(payload).digest("base64url")}`;
};
const claims = (): Record<string, unknown> => {
  // oxlint-disable-next-line no-restricted-properties -- the server under test reads the machine's clock
  const iat = Math.floor(Date.now() / 1000);
  return { user_id: "user-1", session_id: SESSION_ID, role: "owner", iat, exp: iat + 60 };
};

describe("the user context", () => {
  test("is not required for health, by GET or HEAD", async () => {
    const { response, body } = await served.ask("/platform/health", { headers: ["host", "x"] });
    expect(response.statusCode).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ status: "ready", error: null });
    expect((await served.ask("/platform/health", { method: "HEAD", headers: ["host", "x"] })).body).toBe("");
  });

  test.each([
    "/",
    "/platform/abort",
    "/platform/nothing",
    "/proxy/3000/",
    "/proxy/8000/",
    "/platform/health/",
  ])("is required for %s before the answer reveals anything", async (path) => {
    const answer = await served.ask(path, { method: "POST", headers: ["host", "x"] });
    expect(reasonOf(answer)).toBe("401 invalid_user_context missing");
  });

  test.each([
    ["expired", () => signed({ ageS: 61 })],
    ["expired", () => signed({ ageS: -31 })],
    ["wrong_session", () => signed({ sessionId: "0192d3a4-0000-7000-8000-0000000000bb" })],
    ["malformed", () => `${signed()}.x`],
    ["malformed", () => `${signed()}=`],
    ["malformed", () => "x"],
  ])("is refused as %s [A01] [A05]", async (reason, value) => {
    expect(reasonOf(await served.ask("/", { headers: withContext(value()) }))).toBe(
      `401 invalid_user_context ${reason}`,
    );
    expect(reached).toEqual([]);
  });

  test.each([
    ["a newline in the user id [A06]", () => JSON.stringify({ ...claims(), user_id: "a\nb" })],
    ["a NUL in the user id [A06]", () => JSON.stringify({ ...claims(), user_id: "a\0b" })],
    ["a user id of 10 kB [A06]", () => JSON.stringify({ ...claims(), user_id: "x".repeat(10_000) })],
    [
      "a key twice, the good one last [A08]",
      () => `{"user_id":"user-2",${JSON.stringify(claims()).slice(1)}`,
    ],
    [
      "a key twice, the good one first [A08]",
      () => `${JSON.stringify(claims()).slice(0, -1)},"exp":9999999999}`,
    ],
    ["a key twice, once escaped [A08]", () => `{"ex\\u0070":1,${JSON.stringify(claims()).slice(1)}`],
    ["a field more [A03]", () => JSON.stringify({ ...claims(), alg: "none" })],
    [
      "a life of a minute and a second [A07]",
      () => JSON.stringify({ ...claims(), exp: Number(claims()["iat"]) + 61 }),
    ],
  ])("is refused although it is signed: %s", async (_, text) => {
    const answer = await served.ask("/", { headers: withContext(signedText(text())) });
    expect(reasonOf(answer)).toBe("401 invalid_user_context malformed");
    expect(reached).toEqual([]);
    expect((await served.ask("/", { headers: withContext(signedText(JSON.stringify(claims()))) })).body).toBe(
      "runtime",
    );
  });

  test("is refused after any single bit is flipped [A05]", async () => {
    const value = Buffer.from(signed(), "latin1");
    const flips = Array.from({ length: value.length * 8 }, (_, bit) => {
      const flipped = Buffer.from(value);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      return `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Platform-User-Context: ${flipped.toString("latin1")}\r\n\r\n`;
    });
    for (const bytes of flips)
      expect(await served.raw(Buffer.from(bytes, "latin1"))).toMatch(/^HTTP\/1\.1 40[01] /);
    expect(reached).toEqual([]);
  });

  test("that was signed with another token is refused [A04]", async () => {
    const answer = await served.ask("/", { headers: withContext(signed({ token: "platform_sbx_another" })) });
    expect(reasonOf(answer)).toBe("401 invalid_user_context bad_signature");
  });

  test("that is sent twice is refused, with equal or different values [X12]", async () => {
    const value = signed();
    const headers = ["host", "x", "X-Platform-User-Context", value, "x-platform-user-context", value];
    expect(reasonOf(await served.ask("/", { headers }))).toBe("401 invalid_user_context malformed");
  });

  test("is read from its own header only, never from a spelling with underscores [X11]", async () => {
    const headers = ["host", "x", "X_Platform_User_Context", signed()];
    expect(reasonOf(await served.ask("/", { headers }))).toBe("401 invalid_user_context missing");
  });

  test("is never passed on in any spelling, and Authorization is not either [X11]", async () => {
    const headers = {
      ...withContext(signed()),
      x_platform_user_context: "spoofed",
      authorization: "Bearer secret",
    };
    await served.ask("/", { headers });
    const names = reached[0]?.rawHeaders.map((text) => text.toLowerCase()) ?? [];
    expect(names).not.toContain("authorization");
    expect(names.filter((name) => name.includes("context"))).toEqual([]);
  });

  test("is verified before it is dropped with all headers that Connection lists [X10]", async () => {
    const headers = {
      ...withContext(signed()),
      connection: "close, X-Platform-User-Context, Cookie, Content-Length",
      cookie: "a=b",
      "content-length": "2",
    };
    expect((await served.ask("/", { method: "POST", headers, body: "ab" })).response.statusCode).toBe(200);
    expect(reached[0]?.headers).toMatchObject({ "content-length": "2" });
    expect(reached[0]?.headers).not.toHaveProperty("cookie");
    expect(reached[0]?.headers).not.toHaveProperty("x-platform-user-context");
  });

  test("does not let a client state its own address [X13]", async () => {
    const spoofed = {
      forwarded: "for=1.2.3.4",
      "x-real-ip": "1.2.3.4",
      "x-forwarded-for": "1.2.3.4",
      "x-forwarded-host": "evil",
      "x-forwarded-proto": "https",
      "x-forwarded-port": "1",
    };
    await served.ask("/", { headers: { ...withContext(signed()), ...spoofed, host: "asked.example" } });
    const headers = reached[0]?.headers ?? {};
    expect(headers).toMatchObject({
      "x-forwarded-for": "unknown",
      "x-forwarded-host": "asked.example",
      "x-forwarded-proto": "http",
    });
    expect(headers.host).toMatch(/^127\.0\.0\.1:\d+$/);
    for (const name of ["forwarded", "x-real-ip", "x-forwarded-port"])
      expect(headers).not.toHaveProperty(name);
  });
});

describe("with a valid context", () => {
  test("blocked and malformed ports, unknown paths and methods are refused in the one error shape", async () => {
    const codes = await Promise.all(
      [`/proxy/${BLOCKED_PORT}/`, "/proxy/08000/", "/platform/none", "/platform/abort"].map(async (path) =>
        reasonOf(await served.ask(path)),
      ),
    );
    expect(codes).toEqual(["403 port_blocked", "400 bad_port", "404 not_found", "405 method_not_allowed"]);
  });

  test("an absolute target is refused, regardless of its host [X03]", async () => {
    const head = `GET http://169.254.169.254/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`;
    expect(await served.raw(`${head}X-Platform-User-Context: ${contextHeader()}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400 /,
    );
    expect(reached).toEqual([]);
  });

  test("an abort reports whether a run was in progress", async () => {
    const { response, body } = await served.ask("/platform/abort", { method: "POST" });
    expect([response.statusCode, JSON.parse(body)]).toEqual([200, { aborted: true }]);
  });

  test("only the service's own abort is the last: a person goes on with the next message", async () => {
    for (const role of ["owner", SERVICE_ROLE]) {
      // oxlint-disable-next-line no-await-in-loop -- in this order
      await served.ask("/platform/abort", { method: "POST", headers: withContext(signed({ role })) });
    }
    expect(served.aborts).toEqual([false, true]);
  });

  test("only the service has messages taken again", async () => {
    const asked = async (role: string) => {
      const headers = withContext(signed({ role }));
      return (await served.ask("/platform/continue", { method: "POST", headers })).response.statusCode;
    };
    expect([await asked("owner"), served.continued]).toEqual([403, 0]);
    expect([await asked(SERVICE_ROLE), served.continued]).toEqual([200, 1]);
  });
});

const handshake = (headers: Record<string, string>, path = "/ws") =>
  httpRequest({
    socketPath: served.socketPath,
    path,
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    },
  });
/** An upstream that accepts any upgrade and echoes; it tells each handshake. */
const echo = async (): Promise<{ port: number; seen: IncomingMessage[] }> => {
  const seen: IncomingMessage[] = [];
  const server = createServer();
  server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    seen.push(request);
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Own: 1\r\n\r\nhi ",
    );
    socket.pipe(socket);
  });
  return { port: await served.upstream(server), seen };
};

const outcome = (
  call: ReturnType<typeof handshake>,
): Promise<{ status: number; socket: Socket | null; head: Buffer }> =>
  new Promise((resolve, reject) => {
    call.on("error", reject);
    call.on("upgrade", (response, socket, head) =>
      resolve({ status: response.statusCode ?? 0, socket, head }),
    );
    call.on("response", (response) => {
      response.resume();
      resolve({ status: response.statusCode ?? 0, socket: null, head: Buffer.alloc(0) });
    });
    call.end();
  });

describe("a WebSocket", () => {
  test("is connected to its port after the context check, and the context is not passed on", async () => {
    const { port, seen } = await echo();
    const { status, socket, head } = await outcome(handshake(withContext(signed()), `/proxy/${port}/ws?x=1`));
    expect(status).toBe(101);
    let got = head.toString();
    const done = signal();
    socket?.on("data", (chunk) => {
      got += chunk.toString();
      if (got.endsWith("bytes")) done.give();
    });
    socket?.write("bytes");
    await done.given;
    expect(got).toBe("hi bytes");
    expect(seen[0]?.url).toBe("/ws?x=1");
    expect(seen[0]?.headers).not.toHaveProperty("x-platform-user-context");
    const ended = signal();
    socket?.on("close", () => ended.give());
    await served.stop();
    await ended.given;
    served = await Served.start(() => undefined);
  });

  test.each([
    ["no context", {}],
    ["an expired one", { "x-platform-user-context": "expired" }],
  ])("with %s is refused before a byte reaches the upstream [X09]", async (_, headers) => {
    const { port, seen } = await echo();
    const context = "x-platform-user-context" in headers ? withContext(signed({ ageS: 61 })) : {};
    const { status } = await outcome(handshake(context, `/proxy/${port}/ws`));
    expect([status, seen]).toEqual([401, []]);
  });

  test("that the upstream refuses gets the upstream's answer", async () => {
    expect((await outcome(handshake(withContext(signed())))).status).toBe(200);
  });

  test("to a missing upstream is answered 502, or 503 while the runtime boots", async () => {
    const gone = createServer();
    const port = await served.upstream(gone);
    await new Promise((resolve) => gone.close(resolve));
    expect((await outcome(handshake(withContext(signed()), `/proxy/${port}/`))).status).toBe(502);
    served.report.setRuntime({ state: "starting" });
    expect((await outcome(handshake(withContext(signed())))).status).toBe(503);
  });

  test.each(BAD_HANDSHAKES)(
    "is the only accepted upgrade: $name is refused with $status [X08]",
    async (bad) => {
      const { port, seen } = await echo();
      const head = [
        `${bad.method ?? "GET"} /proxy/${port}/ HTTP/1.1`,
        "Host: daemon",
        `X-Platform-User-Context: ${signed()}`,
        "Connection: Upgrade",
        ...bad.lines,
      ];
      const answer = parseAnswer(await served.raw([...head, "", ""].join("\r\n")));
      expect(answer.status).toBe(bad.status);
      expect(answer.headers.get("sec-websocket-version")).toBe(bad.status === 426 ? "13" : undefined);
      expect([seen, reached]).toEqual([[], []]);
    },
  );

  test("ends for the client when the upstream dies", async () => {
    const server = createServer();
    const upstreamSocket = signal<Socket>();
    server.on("upgrade", (_, socket: Socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      upstreamSocket.give(socket);
    });
    const port = await served.upstream(server);
    const { socket } = await outcome(handshake(withContext(signed()), `/proxy/${port}/`));
    const ended = signal();
    socket?.on("error", () => undefined);
    socket?.on("close", () => ended.give());
    socket?.resume();
    (await upstreamSocket.given).destroy();
    await ended.given;
  });
});

test("a request that two parsers could read differently reaches no upstream [X14]", async () => {
  const context = `X-Platform-User-Context: ${contextHeader()}`;
  const heads = [
    "Content-Length: 4\r\nTransfer-Encoding: chunked",
    "Content-Length: 4\r\nContent-Length: 5",
    "Transfer-Encoding: xchunked",
    "Content-Length : 4",
    "X-A: b\r\n folded",
    "Content-Length: +4",
  ];
  const answers = await Promise.all(
    heads.map((head) => served.raw(`POST / HTTP/1.1\r\nHost: x\r\n${context}\r\n${head}\r\n\r\n0\r\n\r\n`)),
  );
  for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 400 /);
  expect(reached).toEqual([]);
});
