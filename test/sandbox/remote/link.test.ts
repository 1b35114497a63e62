/**
 * A sandbox that shares no directory with the service, as real processes on loopback: the link beside it, the service's
 * egress listener, and callers that should get nothing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DaemonClient } from "../../../src/sandbox/daemon.ts";
import { daemonHttp } from "../../../src/sandbox/daemon-http.ts";
import { type ChannelKey, dialChannel } from "../../../src/sandbox/remote/channel.ts";
import { EgressListener } from "../../../src/sandbox/remote/egress-listener.ts";
import { sandboxKeys } from "../../../src/sandbox/remote/keys.ts";
import { hasStarted, startOverLink } from "../../../src/sandbox/remote/start.ts";
import { Front } from "./front.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { freePort } from "../../support/machine/free-port.ts";

const LINK = fileURLToPath(new URL("../../../daemon/programs/link.cjs", import.meta.url));
const HOST = "127.0.0.1";
const SECRET = randomBytes(32);

let directory = "";
let listener: EgressListener;
/** The service's own listener, which sandboxes reach as platform.internal. */
let service: Server;
/** The answer that is not finished. */
let hanging: ServerResponse | null = null;
let cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  directory = await mkdtemp("/tmp/platform-link-");
  listener = await EgressListener.open({ host: HOST, port: 0 });
  service = createServer((incoming, outgoing) => {
    if (incoming.url === "/hang") {
      hanging = outgoing;
      return void outgoing.write("first");
    }
    outgoing.end(`service ${incoming.url}`);
  });
  service.listen(0, HOST);
  await once(service, "listening");
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  cleanups = [];
  await listener.close();
  service.close();
  service.closeAllConnections();
  await rm(directory, { recursive: true, force: true });
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Everything on one sandbox's side: its directory, its link, and a daemon that says who it is. */
interface Sandbox {
  readonly id: string;
  readonly run: string;
  readonly keys: ReturnType<typeof sandboxKeys>;
  readonly link: { readonly host: string; readonly port: number };
  readonly process: ChildProcess;
  /** The daemon. */
  readonly daemon: Server;
}

/** @param lookMs how often the link looks at the service and the daemon, if not as seldom as it usually does */
const openSandbox = async (lookMs?: number): Promise<Sandbox> => {
  const id = randomUUID();
  const run = join(directory, id.slice(0, 8));
  mkdirSync(join(run, "proxy"), { recursive: true });
  const keys = sandboxKeys(SECRET, id);
  writeFileSync(join(run, "key"), Buffer.from(keys.start.key).toString("base64"));
  const daemon = createServer((_request, response) => response.end(JSON.stringify({ daemon: id })));
  daemon.listen(join(run, "d.sock"));
  const link = { host: HOST, port: await freePort() };
  const looks = lookMs === undefined ? [] : [String(lookMs)];
  const child = spawn(process.execPath, [LINK, run, join(run, "key"), HOST, String(link.port), ...looks], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanups.push(
    () => daemon.close(),
    () => child.exitCode ?? (child.kill("SIGKILL"), once(child, "exit")),
  );
  await once(child.stdout, "data");
  return { id, run, keys, link, process: child, daemon };
};

const admit = (sandbox: Sandbox) =>
  listener.admit(sandbox.keys.egress, {
    policy: {
      allow: [],
      secretNames: [],
      serviceUrl: `http://${HOST}:${portOf(service)}`,
      llmUpstream: null,
    },
  });

const start = (sandbox: Sandbox, changes: Partial<Parameters<typeof startOverLink>[0]> = {}) =>
  startOverLink({
    link: sandbox.link,
    egress: { host: HOST, port: listener.port },
    keys: sandbox.keys,
    launch: '{"secret":"canary"}',
    ...changes,
  });

const started = async (): Promise<Sandbox> => {
  const sandbox = await openSandbox();
  await admit(sandbox);
  expect(await start(sandbox)).toEqual({ kind: "started" });
  return sandbox;
};

/** One request over a connection. Null if it got no answer at all. */
const ask = (createConnection: () => Duplex, path: string): Promise<string | null> => {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const call = request({ createConnection, path, headers: { host: "platform.internal" } });
  call.on("error", () => resolve(null));
  call.on("response", (answer) => {
    let text = "";
    answer.on("data", (chunk) => (text += chunk));
    answer.on("error", () => resolve(null));
    answer.on("end", () => resolve(text));
  });
  call.end();
  return promise;
};

const throughLink = ({ link }: Sandbox, key: ChannelKey) => ask(() => dialChannel(link, key), "/");
const throughProxy = ({ run }: Sandbox, path: string) =>
  ask(() => connect(join(run, "proxy/egress.sock")), `http://platform.internal${path}`);
const throughListener = (key: ChannelKey) =>
  ask(() => dialChannel({ host: HOST, port: listener.port }, key), "http://platform.internal/from-elsewhere");

/** Whether the egress listener accepts the key. */
const shakesHands = (key: ChannelKey): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = dialChannel({ host: HOST, port: listener.port }, key);
  socket.once("secureConnect", () => {
    socket.destroy();
    resolve(true);
  });
  socket.on("error", () => resolve(false));
  return promise;
};

describe("a sandbox's link", () => {
  it("hands over the launch file once, and then leads to the daemon and to the service", async () => {
    const sandbox = await started();
    expect(readFileSync(join(sandbox.run, "launch.json"), "utf8")).toBe('{"secret":"canary"}');
    expect(await throughLink(sandbox, sandbox.keys.link)).toBe(JSON.stringify({ daemon: sandbox.id }));
    expect(await throughProxy(sandbox, "/hello")).toBe("service /hello");
    expect(await hasStarted(sandbox)).toBe(true);
  });

  it("carries the service's own client for daemons", async () => {
    const sandbox = await started();
    const link = {
      kind: "url",
      url: `https://${sandbox.link.host}:${sandbox.link.port}`,
      connect: () => dialChannel(sandbox.link, sandbox.keys.link),
    } as const;
    const asked = Effect.flatMap(DaemonClient, (client) => client.models(link, "context"));
    const failure = await Effect.runPromise(Effect.provide(Effect.flip(asked), daemonHttp));
    // It reached this test's daemon, which answers every request alike.
    expect(String(failure)).toMatch(/Missing key|Expected/);
  });

  it("gives a caller without the key no byte, before the start and after [X21]", async () => {
    const sandbox = await openSandbox();
    await admit(sandbox);
    const other = sandboxKeys(SECRET, randomUUID());
    const wrong = { identity: "link", key: randomBytes(32) };
    const attempts = async () => [
      await throughLink(sandbox, wrong),
      await throughLink(sandbox, { identity: "start", key: wrong.key }),
      await throughLink(sandbox, other.link),
      await throughLink(sandbox, other.start),
      await throughLink(sandbox, sandbox.keys.egress),
      // The agent in the same network: plain HTTP to the port.
      await ask(() => connect(sandbox.link), "/"),
    ];
    expect(await attempts()).toEqual(Array.from({ length: 6 }, () => null));
    // The right key, too early.
    expect(await throughLink(sandbox, sandbox.keys.link)).toBeNull();
    expect(await start(sandbox)).toEqual({ kind: "started" });
    expect(await attempts()).toEqual(Array.from({ length: 6 }, () => null));
  });

  it("takes the start key once: a second start gets nothing and changes nothing [X22]", async () => {
    const sandbox = await started();
    const again = await start(sandbox, { launch: "{}" });
    expect(again.kind).toBe("away");
    expect(await throughLink(sandbox, sandbox.keys.start)).toBeNull();
    expect(readFileSync(join(sandbox.run, "launch.json"), "utf8")).toContain("canary");
  });

  it("takes one of two starts at once", async () => {
    const sandbox = await openSandbox();
    await admit(sandbox);
    const both = await Promise.all([start(sandbox), start(sandbox)]);
    // The other one is refused, or finds its key forgotten already.
    expect(both.filter(({ kind }) => kind === "started")).toHaveLength(1);
  });

  it("says that the service cannot be reached, and then can be started", async () => {
    const sandbox = await openSandbox();
    const port = await freePort();
    const lost = await start(sandbox, { egress: { host: HOST, port } });
    expect(lost).toEqual({
      kind: "refused",
      why: `the sandbox cannot reach the service at ${HOST}:${port} (ECONNREFUSED)`,
    });
    expect(existsSync(join(sandbox.run, "launch.json"))).toBe(false);
    await admit(sandbox);
    expect((await start(sandbox)).kind).toBe("started");
  });

  it("survives a start that is no start, and keys appear in no output", async () => {
    const sandbox = await openSandbox();
    await admit(sandbox);
    let output = "";
    sandbox.process.stdout?.on("data", (chunk) => (output += chunk));
    const malformed = request({
      createConnection: () => dialChannel(sandbox.link, sandbox.keys.start),
      method: "POST",
      path: "/start",
    });
    malformed.end("{");
    const [answer] = await once(malformed, "response");
    expect(answer.statusCode).toBe(400);
    expect((await start(sandbox)).kind).toBe("started");
    for (const key of Object.values(sandbox.keys))
      expect(output).not.toContain(Buffer.from(key.key).toString("base64").slice(0, 20));
  });
});

describe("the egress listener", () => {
  it("knows a sandbox by its key, and refuses wrong, unknown and missing ones [X21]", async () => {
    const sandbox = await started();
    const other = await openSandbox();
    expect(await throughListener(sandbox.keys.egress)).toBe("service /from-elsewhere");
    expect(await throughListener(other.keys.egress)).toBeNull();
    // Another sandbox's name with one's own key.
    await admit(other);
    const { key } = sandbox.keys.egress;
    expect(await throughListener({ identity: other.id, key })).toBeNull();
    expect(await throughListener({ identity: "../egress", key })).toBeNull();
    expect(await ask(() => connect({ host: HOST, port: listener.port }), "/")).toBeNull();
    expect(await throughListener(other.keys.egress)).toBe("service /from-elsewhere");
  });

  it("applies each sandbox's own policy, also after it changed", async () => {
    const sandbox = await openSandbox();
    const egress = await admit(sandbox);
    await start(sandbox);
    egress.follow({ allow: [], secretNames: [], serviceUrl: null, llmUpstream: null });
    expect(await throughProxy(sandbox, "/hello")).toContain("egress_refused");
  });

  it("ends a sandbox's connections when it is destroyed, and takes no new ones [X22]", async () => {
    const sandbox = await openSandbox();
    const egress = await admit(sandbox);
    await start(sandbox);
    expect(await shakesHands(sandbox.keys.egress)).toBe(true);
    const call = request({
      createConnection: () => connect(join(sandbox.run, "proxy/egress.sock")),
      path: "http://platform.internal/hang",
      headers: { host: "platform.internal" },
    });
    call.end();
    const [answer] = await once(call, "response");
    const ended = once(answer, "error");
    egress.close();
    await ended;
    expect(await throughProxy(sandbox, "/hello")).toBeNull();
    expect(await shakesHands(sandbox.keys.egress)).toBe(false);
  });
});

/** A sandbox whose link looks often, through a front. */
const watched = async (lookMs: number) => {
  // A link may still dial when the listener has closed.
  const own = listener.port;
  const front = new Front(HOST, () => own);
  const port = await front.open();
  cleanups.push(() => front.shut());
  const sandbox = await openSandbox(lookMs);
  await admit(sandbox);
  expect(await start(sandbox, { egress: { host: HOST, port } })).toEqual({ kind: "started" });
  return { sandbox, front, port };
};

const egressSocket = ({ run }: Sandbox) => join(run, "proxy/egress.sock");
const socketExists = (sandbox: Sandbox, exists: boolean) =>
  expect.poll(() => existsSync(egressSocket(sandbox)), { timeout: WAIT_MS, interval: 10 }).toBe(exists);
const endOf = async ({ process: child }: Sandbox): Promise<number | null> => {
  if (child.exitCode === null) await once(child, "exit");
  return child.exitCode;
};

describe("a link that looks at the service and at the daemon", () => {
  /** Pause between two looks, in milliseconds. */
  const OFTEN = 20;

  it("has a way out only while the service answers, again and again (L3)", async () => {
    const { sandbox, front, port } = await watched(OFTEN);
    for (let outage = 0; outage < 2; outage += 1) {
      await socketExists(sandbox, true);
      expect(await throughProxy(sandbox, "/again")).toBe("service /again");
      front.shut();
      await socketExists(sandbox, false);
      await front.open(port);
    }
    await socketExists(sandbox, true);
    // The daemon and the link lived all the time.
    expect(sandbox.process.exitCode).toBeNull();
    expect(await throughLink(sandbox, sandbox.keys.link)).toBe(JSON.stringify({ daemon: sandbox.id }));
  });

  it("has no way out to a service that does not know the sandbox (L3)", async () => {
    const { sandbox, front } = await watched(OFTEN);
    const { port } = listener;
    await listener.close();
    listener = await EgressListener.open({ host: HOST, port });
    await socketExists(sandbox, false);
    await front.looks(3);
    expect(existsSync(egressSocket(sandbox))).toBe(false);
    await admit(sandbox);
    await socketExists(sandbox, true);
  });

  it("keeps a connection that is open while the service takes no new ones (L3)", async () => {
    const { sandbox, front } = await watched(OFTEN);
    const call = request({
      createConnection: () => connect(egressSocket(sandbox)),
      path: "http://platform.internal/hang",
      headers: { host: "platform.internal" },
    });
    call.end();
    const [answer] = await once(call, "response");
    expect(String((await once(answer, "data"))[0])).toBe("first");
    front.shut();
    await socketExists(sandbox, false);
    const second = once(answer, "data");
    hanging?.write("second");
    expect(String((await second)[0])).toBe("second");
    call.destroy();
  });

  it("ends when the daemon has ended, and not before (L4)", async () => {
    const { sandbox, front } = await watched(OFTEN);
    await front.looks(10);
    expect(sandbox.process.exitCode).toBeNull();
    let output = "";
    sandbox.process.stdout?.on("data", (chunk) => (output += chunk));
    sandbox.daemon.close();
    expect(await endOf(sandbox)).toBe(0);
    expect(output).toContain("the daemon has ended");
  });

  it("outlives a daemon that is away for a look (L4)", async () => {
    const { sandbox, front } = await watched(500);
    await front.looks(2);
    sandbox.daemon.close();
    // With the second look, the first one has found no daemon. Two more would end it: the daemon has a second to come back.
    await front.looks(2);
    sandbox.daemon.listen(join(sandbox.run, "d.sock"));
    await Promise.race([front.looks(5), endOf(sandbox)]);
    expect(sandbox.process.exitCode).toBeNull();
  });

  it("ends if it is never started, even if something listens in the daemon's place (L4)", async () => {
    const sandbox = await openSandbox(5);
    expect(await endOf(sandbox)).toBe(0);
  });
});

it("derives other keys for another sandbox, purpose and installation", () => {
  const ids = [randomUUID(), randomUUID()];
  const keys = [SECRET, randomBytes(32)].flatMap((secret) =>
    ids.flatMap((id) => Object.values(sandboxKeys(secret, id)).map(({ key }) => Buffer.from(key).toString())),
  );
  expect(new Set(keys).size).toBe(12);
});
