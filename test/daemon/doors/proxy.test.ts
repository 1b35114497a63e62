import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { answerOf, contextHeader, Served, signal } from "../support/served.ts";

type Take = (request: IncomingMessage, response: ServerResponse) => void;

let served: Served;
/** The agent runtime's behaviour in the current test. */
let runtime: Take;
beforeEach(async () => {
  runtime = (_, response) => response.end("runtime");
  served = await Served.start((request, response) => runtime(request, response));
});
afterEach(() => served.stop());

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
};

const framed = async (method: string, headers: Record<string, string>, body?: string) =>
  JSON.parse((await served.ask("/", { method, headers, ...(body === undefined ? {} : { body }) })).body);

describe("requests", () => {
  test("pass with method, target, headers and body, and the answer passes as well", async () => {
    runtime = async (request, response) => {
      const body = await bodyOf(request);
      response.writeHead(201, "Made", ["x-one", "1", "set-cookie", "a=1", "set-cookie", "b=2"]);
      response.end(
        JSON.stringify({ method: request.method, url: request.url, own: request.headers["x-own"], body }),
      );
    };
    const { response, body } = await served.ask("/a%20b?c=d", {
      method: "PUT",
      headers: { "x-own": "y" },
      body: "text",
    });
    expect([response.statusCode, response.statusMessage]).toEqual([201, "Made"]);
    expect(response.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(JSON.parse(body)).toEqual({ method: "PUT", url: "/a%20b?c=d", own: "y", body: "text" });
  });

  test("keep their framing of the body, also on methods that seldom have one [X14]", async () => {
    runtime = async (request, response) => {
      const { "content-length": length, "transfer-encoding": encoding } = request.headers;
      response.end(JSON.stringify({ length, encoding, body: await bodyOf(request) }));
    };
    expect(await framed("GET", { "content-length": "2" }, "ab")).toEqual({ length: "2", body: "ab" });
    expect(await framed("DELETE", { "transfer-encoding": "chunked" }, "ab")).toEqual({
      encoding: "chunked",
      body: "ab",
    });
    expect(await framed("POST", { "content-length": "0" })).toEqual({ length: "0", body: "" });
    expect(await framed("GET", {})).toEqual({ body: "" });
    const bare = `POST / HTTP/1.1\r\nHost: x\r\nX-Platform-User-Context: ${contextHeader()}\r\nConnection: close\r\n\r\n`;
    expect(await served.raw(bare)).toContain('{"length":"0","body":""}');
  });

  test("to a port reach that port with the rest of the path unchanged [X06]", async () => {
    const port = await served.upstream(createServer((request, response) => response.end(request.url)));
    const rest = "/../../platform/env//x%2e%2e/..%2f?y=1";
    expect((await served.ask(`/proxy/${port}${rest}`)).body).toBe(rest);
  });

  test("with HEAD keep the length that GET would have", async () => {
    runtime = (_, response) => response.writeHead(200, { "content-length": "5" }).end();
    const { response, body } = await served.ask("/", { method: "HEAD" });
    expect([response.headers["content-length"], body]).toEqual(["5", ""]);
  });

  test("with Expect get the upstream's own answer before the body is sent", async () => {
    runtime = (request, response) => {
      void bodyOf(request).then((body) => response.end(body));
    };
    const call = served.open("/", {
      method: "POST",
      headers: { expect: "100-continue", "content-length": "3" },
    });
    call.on("continue", () => call.end("abc"));
    expect((await answerOf(call)).body).toBe("abc");
  });

  test("with Expect but without a context are refused before the body is requested", async () => {
    const head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    expect(await served.raw(head)).toMatch(/^HTTP\/1.1 401 /);
  });

  test("carry trailers in both directions", async () => {
    runtime = async (request, response) => {
      await bodyOf(request);
      response.writeHead(200, { trailer: "x-sum" });
      response.addTrailers({ "x-sum": `got ${request.trailers["x-client"] ?? "none"}` });
      response.end("body");
    };
    const call = served.open("/", {
      method: "POST",
      headers: { "transfer-encoding": "chunked", trailer: "x-client" },
    });
    call.addTrailers({ "x-client": "7" });
    call.end("data");
    const { response } = await answerOf(call);
    expect(response.trailers).toEqual({ "x-sum": "got 7" });
  });

  test("pass redirects on and never follow them [X05]", async () => {
    runtime = (_, response) =>
      response.writeHead(302, { location: "http://127.0.0.1:8000/platform/env" }).end();
    const { response } = await served.ask("/");
    expect([response.statusCode, response.headers.location]).toEqual([
      302,
      "http://127.0.0.1:8000/platform/env",
    ]);
  });
});

describe("streams", () => {
  test("reach the client event by event, headers before the first", async () => {
    const [connected, first] = [signal(), signal()];
    runtime = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      void connected.given.then(() => response.write("data: 1\n\n"));
      void first.given.then(() => response.end("data: 2\n\n"));
    };
    const call = served.open("/event");
    call.end();
    const response = await new Promise<IncomingMessage>((resolve) => call.on("response", resolve));
    connected.give();
    const events: string[] = [];
    for await (const chunk of response) {
      events.push(String(chunk));
      first.give();
    }
    expect(events).toEqual(["data: 1\n\n", "data: 2\n\n"]);
  });

  test("hold the upstream back while the client does not read", async () => {
    const whole = 64 * 1024 * 1024;
    let written = 0;
    const chunk = Buffer.alloc(1024 * 1024);
    runtime = (request, response) => {
      if (request.url === "/small") return response.end("small");
      const fill = (): void => {
        while (written < whole) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", fill);
        }
        response.end();
      };
      return fill();
    };
    const call = served.open("/big");
    call.end();
    const response = await new Promise<IncomingMessage>((resolve) => call.on("response", resolve));
    // So many other requests go through that the whole of it would have, were it not held back.
    for (let round = 0; round < 200; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after another is the point
      await served.ask("/small");
    }
    expect(written).toBeLessThan(whole / 2);
    let read = 0;
    for await (const part of response) read += (part as Buffer).length;
    expect(read).toBe(whole);
  });

  test.each([{}, { "content-length": "1000" }])(
    "that the upstream breaks off never end cleanly, with headers %j",
    async (headers) => {
      runtime = (_, response) => {
        response.writeHead(200, headers);
        response.write("half", () => response.destroy());
      };
      await expect(served.ask("/")).rejects.toThrow(/aborted|ECONNRESET|socket hang up/);
    },
  );

  test("that the client closes are closed at the upstream too", async () => {
    const [open, left] = [signal(), signal()];
    runtime = (_, response) => {
      response.on("close", () => left.give());
      response.write("first");
      open.give();
    };
    const call = served.open("/event");
    call.on("error", () => undefined);
    call.end();
    await open.given;
    call.destroy();
    await left.given;
  });

  test("that the client breaks off while sending are broken off at the upstream", async () => {
    const [begun, broken] = [signal(), signal()];
    runtime = (request) => {
      request.once("data", () => begun.give());
      request.on("error", () => broken.give());
    };
    const call = served.open("/upload", { method: "POST" });
    call.on("error", () => undefined);
    call.write("part");
    await begun.given;
    call.destroy();
    await broken.given;
  });
});

describe("a request that cannot be passed on", () => {
  test("is answered 503 with Retry-After while the runtime boots", async () => {
    served.report.setRuntime({ state: "starting" });
    const { response, body } = await served.ask("/session");
    expect([response.statusCode, response.headers["retry-after"]]).toEqual([503, "1"]);
    expect(JSON.parse(body)).toMatchObject({ code: "runtime_not_ready" });
  });

  test("is answered 503 while the repository is missing, even if the runtime answers", async () => {
    served.report.setRepo({ ready: false });
    expect((await served.ask("/session")).response.statusCode).toBe(503);
  });

  test("is answered 502 if nothing listens", async () => {
    const closed = createServer();
    const port = await served.upstream(closed);
    await new Promise((resolve) => closed.close(resolve));
    const { response, body } = await served.ask(`/proxy/${port}/`);
    expect(response.statusCode).toBe(502);
    expect(JSON.parse(body)).toMatchObject({ code: "upstream_unreachable" });
  });

  test("is answered 502 if only the IPv6 loopback listens: names are never resolved [X04]", async () => {
    const six = createServer((_, response) => response.end("six"));
    const port = await served.upstream(six, "::1");
    expect((await served.ask(`/proxy/${port}/`)).response.statusCode).toBe(502);
  });

  test("is sent once and answered 502 when the upstream hangs up", async () => {
    let connections = 0;
    const port = await served.upstream(
      createTcpServer((socket) => {
        connections += 1;
        socket.once("data", () => socket.destroy());
      }),
    );
    expect((await served.ask(`/proxy/${port}/`, { method: "POST", body: "x" })).response.statusCode).toBe(
      502,
    );
    expect(connections).toBe(1);
  });

  test.each(["CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT /x HTTP/1.1\r\nHost: x\r\n\r\n"])(
    "is refused: %j [X08]",
    async (text) => expect(await served.raw(text)).toMatch(/^HTTP\/1.1 40[05] /),
  );
});
