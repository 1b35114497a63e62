/**
 * `npm run bench:proxy [-- --rounds 5 --seconds 4 --connections 64 --streams 1000]`: what the daemon's proxy costs, with
 * the check of the user context, beside a direct connection to the same upstream, nginx as a proxy, and a bare proxy over
 * undici's dispatch with the same check.
 *
 * Each round measures all four one after another, in another order each round; a first round warms everything up and is
 * not counted. Requests come from autocannon, latencies from one connection with one request on its way, bodies of
 * 100 MiB from a plain client, all of them in a process of their own. CPU time is the proxy process's, from /proc. For
 * idle streams and WebSockets each proxy starts afresh; their memory is what the resident set grew by, garbage gone, and
 * alive is what heard a word that was said after all were open.
 *
 * Prints medians; ratios are taken within a round. The aims stand beside what came out and are no pass mark: on a small
 * machine the generator and the upstream share the cores with what is measured. The last line is one JSON object.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { signUserContext, USER_CONTEXT_HEADER } from "../../src/domain/sandbox/user-context.ts";
import {
  BODY_BYTES,
  NAMES,
  START,
  startProgram,
  startUpstream,
  type Name,
  type Started,
} from "./proxy/contenders.ts";
import { SESSION_ID, TOKEN } from "./proxy/listening.ts";
import type { Body, Held, Latency, Order, Outcome, Requests } from "./proxy/load.ts";
import {
  summary,
  table,
  type Contender,
  type Idle,
  type IdleRound,
  type Measure,
  type Round,
} from "./proxy/report.ts";
import { cpuMsOf } from "./webhook/processes.ts";
import { wholeFrom1 } from "./figures.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "64" },
    streams: { type: "string", default: "1000" },
    latencies: { type: "string", default: "1000" },
  },
});
const positive = (name: keyof typeof values): number => wholeFrom1(name, values[name]);
const rounds = positive("rounds");
const seconds = positive("seconds");
const connections = positive("connections");
const held = positive("streams");
const latencies = positive("latencies");

const MIB = 1024 * 1024;

/** nginx can check the same HMAC with its njs module only. */
const hasNjs = ((): boolean => {
  try {
    return readdirSync("/usr/lib/nginx/modules").some((file) => file.startsWith("ngx_http_js_module"));
  } catch {
    return false;
  }
})();

interface Generator {
  readonly ask: <A extends Outcome>(order: Order) => Promise<A>;
  readonly close: () => void;
}

const startGenerator = (): Generator => {
  const child = fork(path.join(import.meta.dirname, "proxy/load.ts"), { execArgv: [] });
  const ended = once(child, "exit").then(() => {
    throw new Error("the load generator ended");
  });
  // Callers that wait for an answer hear of its end; at the very end no caller waits.
  ended.catch(() => undefined);
  return {
    ask: async <A extends Outcome>(order: Order): Promise<A> => {
      child.send(order);
      const [outcome] = (await Promise.race([once(child, "message"), ended])) as [A];
      return outcome;
    },
    close: () => child.disconnect(),
  };
};

/** Headers as a relayed request has them, with a context that is good for a minute. */
const headers = (): Record<string, string> => ({
  accept: "application/json",
  "accept-encoding": "gzip, br",
  "user-agent": "bench",
  "x-request-id": "0192d3a4-0000-7000-8000-0000000000bb",
  [USER_CONTEXT_HEADER]: signUserContext(
    {
      userId: "0192d3a4-0000-7000-8000-0000000000cc",
      sessionId: SESSION_ID,
      role: "user",
      // oxlint-disable-next-line no-restricted-properties -- a context is held against the machine's clock
      nowMs: Date.now(),
    },
    TOKEN,
  ),
});

const target = ({ port }: At, where: string) => ({ port, path: where, headers: headers() });

type At = Pick<Started, "pid" | "port">;

/** A way to the upstream of requests and to the one of streams. */
interface Way {
  readonly plain: At;
  readonly streams: At;
}

const measure = async ({ plain, streams }: Way, generator: Generator): Promise<Measure> => {
  const costing = async <A extends Outcome>(
    { pid }: At,
    order: Order,
  ): Promise<A & { readonly cpuMs: number }> => {
    const before = cpuMsOf(pid);
    const outcome = await generator.ask<A>(order);
    return { ...outcome, cpuMs: cpuMsOf(pid) - before };
  };
  const load: Order = { kind: "requests", ...target(plain, "/session"), connections, seconds };
  const requests = await costing<Requests>(plain, load);
  const latency = await generator.ask<Latency>({
    kind: "latency",
    ...target(plain, "/session"),
    requests: latencies,
  });
  const down = await costing<Body>(plain, { kind: "download", ...target(plain, "/file") });
  const up = await costing<Body>(streams, { kind: "upload", ...target(streams, "/sink"), bytes: BODY_BYTES });
  if (down.bytes !== BODY_BYTES) throw new Error(`${down.bytes} bytes came of ${BODY_BYTES}`);
  return {
    perSecond: requests.perSecond,
    cpuUs: (requests.cpuMs * 1000) / requests.answered,
    failed: requests.failed,
    p50Us: latency.p50Us,
    p99Us: latency.p99Us,
    downMibPerSecond: BODY_BYTES / MIB / down.seconds,
    downCpuMs: down.cpuMs,
    upMibPerSecond: BODY_BYTES / MIB / up.seconds,
    upCpuMs: up.cpuMs,
  };
};

/** Starts a separate proxy, so that the growth of its memory is its own. */
const measureIdle = async (name: Name, upstream: Started, generator: Generator): Promise<Idle> => {
  const hold = async (what: "sse" | "websocket") => {
    const proxy = await START[name](upstream.port);
    try {
      const order = { kind: "hold", what, ...target(proxy, `/${what}`) } as const;
      await generator.ask<Held>({ ...order, count: 20 });
      await generator.ask<Held>({ kind: "release", tellPort: upstream.port });
      const before = await proxy.memory();
      await generator.ask<Held>({ ...order, count: held });
      const after = await proxy.memory();
      const { alive } = await generator.ask<Held>({ kind: "release", tellPort: upstream.port });
      return { bytesEach: (after - before) / held, alive };
    } finally {
      await proxy.stop();
    }
  };
  const sse = await hold("sse");
  const webSocket = await hold("websocket");
  return {
    sseBytesEach: sse.bytesEach,
    sseAlive: sse.alive,
    webSocketBytesEach: webSocket.bytesEach,
    webSocketAlive: webSocket.alive,
  };
};

/** All names, beginning with another one each round. */
const turned = <A>(names: readonly A[], by: number): readonly A[] => [
  ...names.slice(by % names.length),
  ...names.slice(0, by % names.length),
];

interface Upstreams {
  readonly plain: Started;
  readonly streams: Started;
}

const runRequests = async (upstreams: Upstreams, generator: Generator): Promise<Round[]> => {
  const ways = new Map<Contender, Way>([["direct", upstreams]]);
  const proxies: Started[] = [];
  const results: Round[] = [];
  const start = async (name: Name, upstream: Started): Promise<Started> => {
    const proxy = await START[name](upstream.port);
    proxies.push(proxy);
    return proxy;
  };
  try {
    for (const name of NAMES) {
      const plain = await start(name, upstreams.plain);
      ways.set(name, { plain, streams: await start(name, upstreams.streams) });
    }
    for (let number = 0; number <= rounds; number += 1) {
      const measured: [Contender, Measure][] = [];
      for (const [name, way] of turned([...ways], number))
        measured.push([name, await measure(way, generator)]);
      const result = Object.fromEntries(measured) as Round;
      if (number > 0) results.push(result);
      const told = NAMES.map((name) => `${name} ${Math.round(result[name].cpuUs)} µs`).join(", ");
      process.stdout.write(`${number === 0 ? "warm-up" : `round ${number}`}: ${told}\n`);
    }
    return results;
  } finally {
    for (const proxy of proxies) await proxy.stop();
  }
};

/** Memory is measured over fewer rounds: it hardly differs between them. */
const IDLE_ROUNDS = 3;

const runIdle = async ({ streams }: Upstreams, generator: Generator): Promise<IdleRound[]> => {
  const results: IdleRound[] = [];
  for (let number = 0; number < Math.min(rounds, IDLE_ROUNDS); number += 1) {
    const measured: [Name, Idle][] = [];
    for (const name of turned(NAMES, number))
      measured.push([name, await measureIdle(name, streams, generator)]);
    results.push(Object.fromEntries(measured) as IdleRound);
  }
  return results;
};

const generator = startGenerator();
const upstreams = { plain: await startUpstream(), streams: await startProgram("streams.ts") };
try {
  process.stdout.write(
    `nginx checks no context: ${hasNjs ? "its njs module is here and not used" : "its njs module is not on this machine"}\n`,
  );
  const measured = await runRequests(upstreams, generator);
  const figures = summary(measured, await runIdle(upstreams, generator));
  process.stdout.write(`\n${table(figures, held)}`);
  process.stdout.write(`${JSON.stringify({ rounds, seconds, connections, streams: held, ...figures })}\n`);
} finally {
  generator.close();
  await upstreams.plain.stop();
  await upstreams.streams.stop();
}
