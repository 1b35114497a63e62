import { once } from "node:events";
import { link, mkdtemp, rm } from "node:fs/promises";
import {
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  createServer,
  request,
} from "node:http";
import { type AddressInfo, type Server, type Socket, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Egress, type EgressOptions, openEgress } from "../../../src/sandbox/egress.ts";
import { NetworkDouble } from "../../support/network.ts";

let directory = "";
let cleanups: (() => void)[] = [];

beforeEach(async () => {
  directory = await mkdtemp("/tmp/platform-egress-");
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) cleanup();
  cleanups = [];
  await rm(directory, { recursive: true });
});

const listen = async (server: Server): Promise<number> => {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => open.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
};

const upstream = (handler: RequestListener): Promise<number> => listen(createServer(handler));

interface Proxy {
  readonly socketPath: string;
  readonly egress: Egress;
}

const openProxy = async (
  policy: Partial<EgressOptions["policy"]>,
  options: Partial<EgressOptions> = {},
): Promise<Proxy> => {
  const socketPath = join(directory, "egress.sock");
  const egress = await openEgress(socketPath, {
    policy: { allow: [], secretNames: [], serviceUrl: "http://127.0.0.1:1", llmUpstream: null, ...policy },
    network: { resolve: new NetworkDouble([]).resolve },
    ...options,
  });
  cleanups.push(() => egress.close());
  return { socketPath, egress };
};

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const readAll = async (incoming: IncomingMessage): Promise<string> => {
  let body = "";
  for await (const chunk of incoming) body += String(chunk);
  return body;
};

/** One request through the proxy. */
const send = async (
  { socketPath }: Proxy,
  url: string,
  options: { readonly method?: string; readonly headers?: OutgoingHttpHeaders; readonly body?: string } = {},
): Promise<Answer> => {
  const { body, ...rest } = options;
  const outgoing = request({ socketPath, path: url, ...rest });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: incoming.statusCode, headers: incoming.headers, body: await readAll(incoming) };
};

/** Opens a tunnel; the socket is null where the proxy refused. */
const tunnel = async ({ socketPath }: Proxy, target: string) => {
  const outgoing = request({ socketPath, method: "CONNECT", path: target });
  outgoing.end();
  const [incoming, socket] = (await once(outgoing, "connect")) as [IncomingMessage, Socket];
  const { statusCode: status, statusMessage: phrase } = incoming;
  return { status, phrase, socket: status === 200 ? socket : null };
};

const echo: RequestListener = (incoming, outgoing) => {
  void readAll(incoming).then((body) =>
    outgoing.end(
      JSON.stringify({ method: incoming.method, url: incoming.url, headers: incoming.headers, body }),
    ),
  );
};

it("replaces a socket that a dead service left behind", async () => {
  const former = createTcpServer().listen(join(directory, "former.sock"));
  await once(former, "listening");
  // Closing removes the first name only.
  await link(join(directory, "former.sock"), join(directory, "egress.sock"));
  former.close();
  const { status } = await send(await openProxy({}), "http://example.com/");
  expect(status).toBe(403);
});

describe("the egress proxy to the service", () => {
  it("passes method, raw path, headers and body on under the name that the sandbox knows", async () => {
    const port = await upstream(echo);
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    const { status, body } = await send(proxy, "http://platform.internal/v1/a/../b?x=%2e", {
      method: "POST",
      headers: { host: "platform.internal", "x-kept": "1" },
      body: "hello",
    });
    expect(status).toBe(200);
    const seen = JSON.parse(body) as {
      headers: Record<string, string>;
      url: string;
      method: string;
      body: string;
    };
    expect([seen.method, seen.url, seen.body]).toEqual(["POST", "/v1/a/../b?x=%2e", "hello"]);
    expect([seen.headers["host"], seen.headers["x-kept"]]).toEqual(["platform.internal", "1"]);
  });

  it("drops headers for the proxy, and headers that Connection lists [X10]", async () => {
    const port = await upstream(echo);
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    const { body } = await send(proxy, "http://platform.internal/", {
      headers: { connection: "x-mine", "x-mine": "1", "proxy-authorization": "Basic x", te: "trailers" },
    });
    const seen = JSON.parse(body) as { headers: Record<string, string> };
    for (const name of ["x-mine", "proxy-authorization", "te"]) expect(seen.headers).not.toHaveProperty(name);
  });

  it("keeps a body of unknown length framed, for every method", async () => {
    const port = await upstream(echo);
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    const { body } = await send(proxy, "http://platform.internal/", {
      method: "GET",
      headers: { "transfer-encoding": "chunked" },
      body: "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n",
    });
    expect(JSON.parse(body)).toMatchObject({ url: "/", body: "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n" });
  });

  it("streams an answer as it arrives", async () => {
    const more = Promise.withResolvers<void>();
    const port = await upstream((_incoming, outgoing) => {
      outgoing.write("first");
      void more.promise.then(() => outgoing.end("second"));
    });
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    const outgoing = request({ socketPath: proxy.socketPath, path: "http://platform.internal/" });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const [chunk] = (await once(incoming, "data")) as [Buffer];
    expect(chunk.toString()).toBe("first");
    more.resolve();
    const [last] = (await once(incoming, "data")) as [Buffer];
    expect(last.toString()).toBe("second");
  });

  it("breaks off with an upstream that dies during its answer", async () => {
    const port = await upstream((_incoming, outgoing) => {
      outgoing.write("half", () => outgoing.destroy());
    });
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    await expect(send(proxy, "http://platform.internal/")).rejects.toThrow(/aborted|hang up|reset/);
  });

  it("applies a new policy from the moment it gets one", async () => {
    const policy = { allow: [], secretNames: [], serviceUrl: "http://127.0.0.1:1", llmUpstream: null };
    const proxy = await openProxy(policy);
    const status = async () => (await send(proxy, "http://api.anthropic.com/")).status;
    expect(await status()).toBe(403);
    proxy.egress.follow({ ...policy, secretNames: ["ANTHROPIC_API_KEY"] });
    // It is let through to where names are resolved.
    expect(await status()).toBe(502);
    proxy.egress.follow(policy);
    expect(await status()).toBe(403);
  });

  it("answers 502 when the service is away", async () => {
    const proxy = await openProxy({ serviceUrl: "http://127.0.0.1:1" });
    const { status, body } = await send(proxy, "http://platform.internal/");
    expect([status, JSON.parse(body)]).toMatchObject([502, { code: "egress_failed" }]);
  });

  it("joins a tunnel's WebSocket to the service once the service agreed", async () => {
    const server = createServer();
    server.on("upgrade", (_incoming, socket: Socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
      socket.pipe(socket);
    });
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${await listen(server)}` });
    const { socket } = await tunnel(proxy, "platform.internal:80");
    const headers = { connection: "upgrade", upgrade: "x" };
    const outgoing = request({ createConnection: () => socket as Socket, path: "/v1/live", headers }).end();
    const [, joined] = (await once(outgoing, "upgrade")) as [IncomingMessage, Socket];
    joined.write("hello");
    expect(String(await once(joined, "data"))).toBe("hello");
    joined.destroy();
  });

  it("sends no webhook: not plain, not in a tunnel, not as a WebSocket [X25]", async () => {
    const asked: string[] = [];
    const port = await upstream((incoming, outgoing) => {
      asked.push(incoming.url ?? "");
      outgoing.end();
    });
    const proxy = await openProxy({ serviceUrl: `http://127.0.0.1:${port}` });
    const path = "/v1/webhooks/projects/p/hook";
    const plain = await send(proxy, `http://platform.internal${path}`, { method: "POST", body: "{}" });
    const error = "egress proxy: webhooks come from outside: a sandbox cannot send one";
    expect([plain.status, JSON.parse(plain.body)]).toEqual([403, { error, code: "egress_refused" }]);
    const inTunnel = async (to: string, headers: OutgoingHttpHeaders = {}) => {
      const { socket } = await tunnel(proxy, "platform.internal:80");
      const wish = { createConnection: () => socket as Socket, method: "POST", path: to, headers };
      const outgoing = request(wish).end();
      const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    expect(await inTunnel(path)).toBe(403);
    expect(await inTunnel(path, { connection: "upgrade", upgrade: "x" })).toBe(403);
    expect(await inTunnel("/v1/me")).toBe(200);
    expect(asked).toEqual(["/v1/me"]);
  });
});

describe("the egress proxy to the model gateway", () => {
  it("asks the upstream under its own name, with the client's path", async () => {
    const port = await upstream(echo);
    const proxy = await openProxy({ llmUpstream: `http://127.0.0.1:${port}/v1` });
    const { body } = await send(proxy, "http://llm.platform.internal/v1/chat", {
      method: "POST",
      body: "{}",
    });
    const seen = JSON.parse(body) as { headers: Record<string, string>; url: string };
    expect([seen.url, seen.headers["host"]]).toEqual(["/v1/chat", `127.0.0.1:${port}`]);
  });

  it("reaches nothing else of the gateway's host [X24]", async () => {
    const asked: string[] = [];
    const port = await upstream((incoming, outgoing) => {
      asked.push(`${incoming.method ?? ""} ${incoming.url ?? ""}`);
      outgoing.end();
    });
    const proxy = await openProxy({ llmUpstream: `http://127.0.0.1:${port}/v1` });
    const refused = ["/admin", "/v1/../admin", "/v1/%2e%2e/admin", "/", "/v1x"].map((path) => ({ path }));
    const methods = ["DELETE", "PUT", "OPTIONS"].map((method) => ({ path: "/v1/models", method }));
    for (const { path, ...options } of [...refused, ...methods]) {
      const { status, body } = await send(proxy, `http://llm.platform.internal${path}`, options);
      expect([path, status]).toEqual([path, 403]);
      if (path === "/admin") expect(body).toContain("GET and POST below /v1 only");
    }
    expect((await tunnel(proxy, "llm.platform.internal:80")).status).toBe(403);
    expect((await send(proxy, "http://llm.platform.internal/v1/models")).status).toBe(200);
    expect(asked).toEqual(["GET /v1/models"]);
  });

  it("refuses requests if the account has no gateway", async () => {
    const proxy = await openProxy({});
    expect((await send(proxy, "http://llm.platform.internal/")).status).toBe(403);
  });
});

/** A proxy whose public IPv4 addresses lead to one local server. Those of IPv6 refuse connections. */
const openPublic = async (policy: Partial<EgressOptions["policy"]>, addresses: readonly string[]) => {
  const port = await upstream(echo);
  const network = new NetworkDouble([addresses], (address) => (address.includes(":") ? "refuses" : port));
  return { proxy: await openProxy(policy, { network }), network };
};

/** A tunnel to a public host, which leads to this server. */
const openTunnel = async (accept: (socket: Socket) => void) => {
  const port = await listen(createTcpServer({ allowHalfOpen: true }, accept));
  const network = new NetworkDouble([["93.184.216.34"]], () => port);
  const proxy = await openProxy({ allow: ["example.org"] }, { network });
  return { proxy, ...(await tunnel(proxy, "example.org:443")) };
};

describe("the egress proxy to public hosts", () => {
  it("reaches a host at its next address if one refuses, by a request and by a tunnel", async () => {
    const { proxy, network } = await openPublic({ allow: ["example.org"] }, [
      "2606:4700::1111",
      "93.184.216.34",
    ]);
    expect((await send(proxy, "http://example.org/")).status).toBe(200);
    expect((await tunnel(proxy, "example.org:443")).status).toBe(200);
    expect(network.dialled).toEqual([
      "2606:4700::1111:80",
      "93.184.216.34:80",
      "2606:4700::1111:443",
      "93.184.216.34:443",
    ]);
  });

  it("tunnels both ways, to the last byte after a half-close", async () => {
    const { socket } = await openTunnel((accepted) => {
      accepted.on("data", () => undefined).on("end", () => accepted.end("y".repeat(5_000_000)));
    });
    socket?.end("done");
    let received = 0;
    socket?.on("data", (chunk: Buffer) => (received += chunk.length));
    await once(socket as Socket, "end");
    expect(received).toBe(5_000_000);
  });

  it("ends open tunnels when the proxy is closed", async () => {
    const { proxy, socket } = await openTunnel(() => undefined);
    const closed = once(socket as Socket, "close");
    proxy.egress.close();
    await closed;
  });

  it("refuses the service's own hosts, and a name that leads to this machine [X25]", async () => {
    const machine = "93.184.216.34";
    const port = await upstream(echo);
    const proxy = await openProxy(
      { allow: ["*"], serviceHosts: ["platform.example.org"] },
      { network: new NetworkDouble([[machine]], () => port), own: () => [machine] },
    );
    const { status, body } = await send(proxy, "http://Platform.example.org./");
    expect([status, body]).toEqual([403, expect.stringContaining("sandboxes use http://platform.internal")]);
    expect((await tunnel(proxy, "platform.example.org:443")).status).toBe(403);
    expect((await tunnel(proxy, "other.example.org:443")).phrase).toMatch(/^Refused: .*other\.example\.org/);
  });

  it("refuses the address behind the service's own host, such as a load balancer's, under any other name [X25]", async () => {
    const balancer = "93.184.216.50";
    const port = await upstream(echo);
    const network = new NetworkDouble([], () => port);
    const resolve = async (host: string) => (host.startsWith("other.") ? ["93.184.216.51"] : [balancer]);
    const proxy = await openProxy(
      { allow: ["*", "shared.example.net"], serviceHosts: ["platform.example.org", "*.preview.example.org"] },
      { network: { resolve, connect: network.connect }, own: () => [] },
    );
    for (const target of [`${balancer}:443`, "balancer.example.net:443"]) {
      const { status, phrase } = await tunnel(proxy, target);
      expect([status, phrase]).toEqual([403, expect.stringContaining("has an address of this service")]);
    }
    const plain = await send(proxy, `http://${balancer}/v1/webhooks/projects/p/hook`, { method: "POST" });
    expect(plain.status).toBe(403);
    expect(network.dialled).toEqual([]);
    // Neighbours behind one address, as at a content network: the operator names the host.
    expect((await tunnel(proxy, "shared.example.net:443")).status).toBe(200);
    expect((await tunnel(proxy, "other.example.net:443")).status).toBe(200);
  });

  it("tells which hosts it refuses for their address", async () => {
    const refused: string[] = [];
    const proxy = await openProxy(
      { allow: ["*"] },
      {
        network: new NetworkDouble([["10.0.0.5"]]),
        refused: (host, reason) => void refused.push(`${host}: ${reason}`),
      },
    );
    expect((await send(proxy, "http://rebind.example/")).status).toBe(403);
    expect((await tunnel(proxy, "rebind.example:443")).status).toBe(403);
    const line = "rebind.example: rebind.example has a private address (10.0.0.5)";
    expect(refused).toEqual([line, line]);
  });

  it("opens a model provider's host while its key is among the secrets", async () => {
    const { proxy } = await openPublic({ secretNames: ["ANTHROPIC_API_KEY"] }, ["93.184.216.34"]);
    expect((await tunnel(proxy, "api.anthropic.com:443")).status).toBe(200);
    expect((await tunnel(proxy, "api.openai.com:443")).status).toBe(403);
  });

  it("refuses unlisted hosts, with a reason, before it resolves any name", async () => {
    const { proxy, network } = await openPublic({ allow: ["example.org"] }, []);
    const { status, headers, body } = await send(proxy, "http://other.example/");
    expect([status, headers["content-type"]]).toEqual([403, "application/json"]);
    expect(JSON.parse(body)).toMatchObject({
      code: "egress_refused",
      error: expect.stringContaining("other.example"),
    });
    expect(network.resolved).toEqual([]);
  });

  it("reports that a name does not resolve", async () => {
    const proxy = await openProxy({ allow: ["*"] });
    expect((await send(proxy, "http://nowhere.example/")).status).toBe(502);
  });

  it("refuses requests that are not proxy requests, and upgrades outside a tunnel", async () => {
    const { proxy } = await openPublic({ allow: ["*"] }, []);
    expect((await send(proxy, "/v1/me")).status).toBe(400);
    expect((await send(proxy, "ftp://example.org/")).status).toBe(400);
    const upgrade = { connection: "upgrade", upgrade: "websocket" };
    expect((await send(proxy, "http://example.org/", { headers: upgrade })).status).toBe(400);
    expect((await tunnel(proxy, "example.org")).status).toBe(400);
  });
});
