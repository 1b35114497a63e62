/**
 * The load generator, in a separate process so that its CPU time is counted apart. Each connection has one request in
 * progress at a time. Requests are signed beforehand and copied with a new delivery id into the connection's buffer,
 * and answers are read without an HTTP client, so that the generator itself is not measured.
 */
import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createHistogram } from "node:perf_hooks";
import { obey } from "../programs.ts";

/** One round, as the parent asks for it. */
export interface Order {
  readonly port: number;
  readonly path: string;
  readonly secret: string;
  readonly connections: number;
  readonly seconds: number;
  /** Ends the round when so many webhooks have their answers, if that is sooner. */
  readonly count?: number;
  /** Webhooks a second, over all connections. Without it, each connection sends as soon as it has its answer. */
  readonly rate?: number;
}

/** What came of it. */
export interface Outcome {
  /** 202 answers a second, of those that came before the time was up. */
  readonly acceptedPerSecond: number;
  /** Every answer by its status, those after the time was up included. */
  readonly answers: Readonly<Record<string, number>>;
  /** Connections that ended with a request on its way; it was given up. */
  readonly disconnected: number;
  /** Of 202 answers, in µs. */
  readonly latency: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly generatorCpuMs: number;
}

/** Bodies that are signed beforehand; each is sent many times under new delivery ids. */
const BODIES = 2_000;
const BODY_BYTES = 1_000;
const RECEIVE_BYTES = 16_384;
/** A request that is not answered for this long is given up with its connection. */
const PATIENCE_MS = 30_000;
/** With more than this, the receiver is away and the round has failed. */
const DISCONNECTED_MAX = 1_000;
const ID_BYTES = 36;

interface Requests {
  readonly templates: readonly Buffer[];
  /** Where the delivery id stands: in all at the same place, since all are of one length. */
  readonly idOffset: number;
  readonly bytes: number;
}

/** A push with the fields that templates like to name, padded to the same length each. */
const bodyOf = (index: number): string => {
  const id = index.toString(16).padStart(40, "0");
  const push = {
    ref: "refs/heads/main",
    head_commit: { id, message: "Say hello to everyone" },
    repository: { name: "sample", full_name: "someone/sample" },
    pusher: { name: "someone" },
    padding: "",
  };
  return JSON.stringify({ ...push, padding: "x".repeat(BODY_BYTES - JSON.stringify(push).length) });
};

const prepare = ({ path, secret, port }: Order): Requests => {
  const made = Array.from({ length: BODIES }, (_, index) => {
    const body = bodyOf(index);
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const head =
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\nuser-agent: bench\r\nx-hub-signature-256: sha256=${signature}\r\n` +
      "x-github-delivery: ";
    return { head, template: Buffer.from(`${head}${" ".repeat(ID_BYTES)}\r\n\r\n${body}`) };
  });
  const [first] = made;
  if (first === undefined || made.some(({ template }) => template.length !== first.template.length))
    throw new Error("the requests are not of one length");
  return {
    templates: made.map(({ template }) => template),
    idOffset: first.head.length,
    bytes: first.template.length,
  };
};

/** The answer's status; null while more of it is to come. */
const statusOf = (text: string): string | null => {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end + 2))?.[1];
  if (length === undefined) throw new Error(`an answer without a length:\n${text.slice(0, end)}`);
  return text.length < end + 4 + Number(length) ? null : text.slice(9, 12);
};

class Round {
  readonly #order: Order;
  readonly #requests: Requests;
  readonly #latency = createHistogram();
  readonly #answers: Record<string, number> = {};
  /** Between two webhooks of one connection. */
  readonly #everyMs: number;
  #deadline = 0;
  #sent = 0;
  #inTime = 0;
  #disconnected = 0;
  #next = 0;

  constructor(order: Order) {
    this.#order = order;
    this.#requests = prepare(order);
    this.#everyMs = order.rate === undefined ? 0 : (order.connections * 1000) / order.rate;
  }

  async run(): Promise<Outcome> {
    const opened = Array.from({ length: this.#order.connections }, () => this.#open());
    const connections = await Promise.all(opened);
    const cpu = process.cpuUsage();
    const begun = performance.now();
    this.#deadline = begun + this.#order.seconds * 1000;
    await Promise.all(connections.map(({ send }) => send()));
    const seconds = (Math.min(performance.now(), this.#deadline) - begun) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    return {
      acceptedPerSecond: this.#inTime / seconds,
      answers: this.#answers,
      disconnected: this.#disconnected,
      latency: {
        p50: this.#latency.percentile(50),
        p99: this.#latency.percentile(99),
        max: this.#latency.max,
      },
      generatorCpuMs: (user + system) / 1000,
    };
  }

  /** A connection, and `send`, which sends until the time is up and completes when the last answer is in. */
  async #open(): Promise<{ readonly send: () => Promise<void> }> {
    const request = Buffer.alloc(this.#requests.bytes);
    const done = Promise.withResolvers<void>();
    let startedAt = 0;
    let received = "";
    let isWaiting = false;
    let dueAt = 0;
    const next = (socket: Socket): void => {
      const early = dueAt - performance.now();
      if (early > 0) setTimeout(send, early, socket);
      else send(socket);
    };
    const send = (socket: Socket): void => {
      startedAt = performance.now();
      // A late connection does not catch up: what is measured is the work of one webhook.
      dueAt = Math.max(dueAt, startedAt - this.#everyMs) + this.#everyMs;
      isWaiting = startedAt < this.#deadline && this.#sent < (this.#order.count ?? Infinity);
      if (!isWaiting) {
        socket.destroy();
        return done.resolve();
      }
      this.#fill(request);
      this.#sent += 1;
      socket.write(request);
    };
    const dial = async (): Promise<Socket> => {
      const socket = connect({
        port: this.#order.port,
        host: "127.0.0.1",
        noDelay: true,
        onread: {
          buffer: Buffer.alloc(RECEIVE_BYTES),
          callback: (count, buffer) => {
            received += Buffer.from(buffer.buffer, buffer.byteOffset, count).toString("latin1");
            const status = statusOf(received);
            if (status === null) return true;
            received = "";
            this.#answered(status, startedAt);
            next(socket);
            return true;
          },
        },
      });
      await once(socket, "connect");
      socket.setTimeout(PATIENCE_MS, () => socket.destroy());
      socket.on("error", () => socket.destroy());
      socket.once("close", () => {
        if (!isWaiting) return;
        received = "";
        this.#disconnected += 1;
        if (performance.now() >= this.#deadline) return done.resolve();
        if (this.#disconnected > DISCONNECTED_MAX)
          return done.reject(new Error("the receiver keeps closing"));
        dial().then(next, done.reject);
      });
      return socket;
    };
    const socket = await dial();
    return {
      send: () => {
        next(socket);
        return done.promise;
      },
    };
  }

  #fill(request: Buffer): void {
    const { templates, idOffset } = this.#requests;
    templates[this.#next % templates.length]?.copy(request);
    request.write(randomUUID(), idOffset, "latin1");
    this.#next += 1;
  }

  #answered(status: string, startedAt: number): void {
    const now = performance.now();
    this.#answers[status] = (this.#answers[status] ?? 0) + 1;
    if (status !== "202") return;
    this.#latency.record(Math.max(1, Math.round((now - startedAt) * 1000)));
    if (now < this.#deadline) this.#inTime += 1;
  }
}

obey((order: Order) => new Round(order).run());
