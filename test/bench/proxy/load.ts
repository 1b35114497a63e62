/** Makes the load in a separate process, so that its CPU time is counted apart: requests, bodies, idle streams. */
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { createHistogram } from "node:perf_hooks";
import autocannon from "autocannon";
import { WebSocket } from "ws";

interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the parent asks for. */
export type Order =
  | (Target & { readonly kind: "requests"; readonly connections: number; readonly seconds: number })
  | (Target & { readonly kind: "latency"; readonly requests: number })
  | (Target & { readonly kind: "download" })
  | (Target & { readonly kind: "upload"; readonly bytes: number })
  | (Target & { readonly kind: "hold"; readonly what: "sse" | "websocket"; readonly count: number })
  /** Has the upstream say something to all that are held, counts who heard it, and lets them go. */
  | { readonly kind: "release"; readonly tellPort: number };

export interface Requests {
  readonly answered: number;
  readonly perSecond: number;
  /** Answers that were no 200, and requests without one. */
  readonly failed: number;
}
export interface Latency {
  readonly p50Us: number;
  readonly p99Us: number;
}
export interface Body {
  readonly bytes: number;
  readonly seconds: number;
}
export interface Held {
  readonly alive: number;
}
export type Outcome = Requests | Latency | Body | Held;

const WARM_UP = 200;
const BLOCK = Buffer.alloc(64 * 1024, "x");
/** Held connections are opened in small groups, so that no accept queue overflows. */
const TOGETHER = 50;
const HEARD_WITHIN_MS = 10_000;

const requests = async (order: Order & { kind: "requests" }): Promise<Requests> => {
  const { port, path, headers, connections, seconds } = order;
  const result = await autocannon({
    url: `http://127.0.0.1:${port}${path}`,
    headers: { ...headers },
    connections,
    duration: seconds,
  });
  return {
    answered: result["2xx"],
    perSecond: result["2xx"] / result.duration,
    failed: result.non2xx + result.errors + result.timeouts,
  };
};

const open = ({ port, path, headers }: Target, method: string, agent?: Agent) =>
  httpRequest({ host: "127.0.0.1", port, path, headers, method, ...(agent === undefined ? {} : { agent }) });

const answerOf = async (call: ReturnType<typeof httpRequest>): Promise<IncomingMessage> => {
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return response;
};

const count = async (response: IncomingMessage): Promise<number> => {
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  return bytes;
};

const latency = async (order: Order & { kind: "latency" }): Promise<Latency> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const histogram = createHistogram();
  for (let index = 0; index < order.requests + WARM_UP; index += 1) {
    const begun = performance.now();
    const call = open(order, "GET", agent);
    call.end();
    await count(await answerOf(call));
    if (index >= WARM_UP) histogram.record(Math.max(1, Math.round((performance.now() - begun) * 1000)));
  }
  agent.destroy();
  return { p50Us: histogram.percentile(50), p99Us: histogram.percentile(99) };
};

const download = async (order: Order & { kind: "download" }): Promise<Body> => {
  const begun = performance.now();
  const call = open(order, "GET");
  call.end();
  const bytes = await count(await answerOf(call));
  return { bytes, seconds: (performance.now() - begun) / 1000 };
};

const upload = async (order: Order & { kind: "upload" }): Promise<Body> => {
  const begun = performance.now();
  const headers = { ...order.headers, "content-length": String(order.bytes) };
  const call = open({ ...order, headers }, "PUT");
  const answered = answerOf(call);
  for (let sent = 0; sent < order.bytes; sent += BLOCK.length) {
    if (!call.write(BLOCK.subarray(0, Math.min(BLOCK.length, order.bytes - sent)))) await once(call, "drain");
  }
  call.end();
  const response = await answered;
  await count(response);
  if (response.statusCode !== 200) throw new Error(`the upload was answered ${response.statusCode}`);
  return { bytes: order.bytes, seconds: (performance.now() - begun) / 1000 };
};

/** A connection that is held open; `heard` counts the messages that it received. */
interface Stream {
  heard: number;
  readonly close: () => void;
}

const held: Stream[] = [];

const openStream = async (target: Target): Promise<void> => {
  const call = open(target, "GET", new Agent());
  call.end();
  const response = await answerOf(call);
  const stream: Stream = { heard: 0, close: () => call.destroy() };
  response.on("error", () => undefined);
  response.on("data", () => (stream.heard += 1));
  await once(response, "data");
  held.push(stream);
};

const openSocket = async ({ port, path, headers }: Target): Promise<void> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers, perMessageDeflate: false });
  const stream: Stream = { heard: 0, close: () => socket.terminate() };
  socket.on("error", () => undefined);
  socket.on("message", () => (stream.heard += 1));
  await once(socket, "message");
  held.push(stream);
};

const hold = async (order: Order & { kind: "hold" }): Promise<Held> => {
  const openOne = order.what === "sse" ? openStream : openSocket;
  for (let opened = 0; opened < order.count; opened += TOGETHER) {
    const group = Array.from({ length: Math.min(TOGETHER, order.count - opened) }, () => openOne(order));
    await Promise.all(group);
  }
  return { alive: held.length };
};

const release = async ({ tellPort }: Order & { kind: "release" }): Promise<Held> => {
  const call = open({ port: tellPort, path: "/tell", headers: {} }, "GET");
  call.end();
  await count(await answerOf(call));
  const deadline = performance.now() + HEARD_WITHIN_MS;
  const heard = () => held.filter((stream) => stream.heard > 1).length;
  while (heard() < held.length && performance.now() < deadline) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  const alive = heard();
  for (const { close } of held.splice(0)) close();
  return { alive };
};

const obey = (order: Order): Promise<Outcome> => {
  if (order.kind === "requests") return requests(order);
  if (order.kind === "latency") return latency(order);
  if (order.kind === "download") return download(order);
  if (order.kind === "upload") return upload(order);
  if (order.kind === "hold") return hold(order);
  return release(order);
};

process.on("message", (order: Order) => {
  obey(order).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
