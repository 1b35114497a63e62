/**
 * HTTP to the servers of connectors (U1 to U4 of src/connectors/port.ts): the client for all of them, and for the library of MCP
 * servers a `fetch` for one exchange with one server, which bounds what it reads. It opens no stream for messages beside its requests.
 */
import type { Response as NetResponse } from "undici";
import { trustedHosts } from "../ground/net/address.ts";
import type { ClientOptions, NetClient } from "../ground/net/client.ts";
import type { Network } from "../ground/net/dial.ts";
import { NetFault, toFault } from "../ground/net/fault.ts";
import { isRecord } from "../ground/record.ts";

/** How long the server gets to hear that a session is over, or that a call was given up. */
export const GOODBYE_MS = 2000;
/** How long the client may take to read an answer that has arrived. */
const READ_MS = 1000;

/** Why an exchange failed that had a connection, as part of a sentence about the server. */
export class WireFault extends Error {
  readonly why: string;
  constructor(why: string) {
    super(why);
    this.why = why;
  }
}

/** Why an exchange failed, as part of a sentence about the server. */
export const exchangeFault = (error: unknown): string =>
  error instanceof WireFault || error instanceof NetFault ? error.why : "cannot be reached";

/** @param allowHosts hosts that may have a private address, or plain http. */
export const clientOptions = (allowHosts: readonly string[], network: Network = {}): ClientOptions => ({
  ...network,
  allowances: trustedHosts(allowHosts, "PLATFORM_CONNECTOR_ALLOW_HOSTS"),
  connectMs: 10_000,
  // The exchange has a deadline of its own.
  silentMs: 60_000,
  connections: 64,
});

export interface ExchangeOptions {
  readonly client: NetClient;
  /** The URL of the server. Requests to another origin are refused. */
  readonly url: URL;
  /** For all answers together, decoded. */
  readonly maxBytes: number;
}

export const CANCELLED = "notifications/cancelled";

/**
 * A message of the client beside the call, while the answer to that is still under way: a goodbye, or the answer to a request of
 * the server, such as a ping. Null if it is the call, or leads to it.
 */
const classify = (method: string, body: string | null): "goodbye" | "answer" | null => {
  if (method === "DELETE") return "goodbye";
  const message: unknown = body === null ? null : JSON.parse(body);
  if (!isRecord(message)) return null;
  if (message["method"] === CANCELLED) return "goodbye";
  return "method" in message ? null : "answer";
};

/** One exchange with a server: some requests, one of which matters. */
export class Exchange {
  /** Rejects when an answer breaks off, ends without a message, or is too large. */
  readonly broken: Promise<never>;
  /** The status of the last request of the client that was answered. */
  status: number | null = null;
  /** Set when a request whose repetition would matter has been handed to the network. */
  isSent = false;
  /** True while the request that matters is under way. */
  isCalling = false;
  readonly #options: ExchangeOptions;
  /** Ends the exchange with this fault, if it has not ended. */
  readonly fail: (fault: WireFault | NetFault) => void;
  #bytes = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { promise, reject } = Promise.withResolvers<never>();
    this.broken = promise;
    this.fail = reject;
    promise.catch(() => undefined);
  }

  readonly fetch = async (target: string | URL, init: RequestInit = {}): Promise<Response> => {
    const method = init.method ?? "GET";
    // The client would keep a stream open for messages that belong to no request.
    if (method === "GET") return new Response(null, { status: 405 });
    const url = new URL(target);
    if (url.origin !== this.#options.url.origin)
      throw this.#failed(new WireFault("redirects to another origin"));
    // The client sends JSON.
    const body = typeof init.body === "string" ? init.body : null;
    const aside = classify(method, body);
    const isAside = aside !== null;
    try {
      const signals = [init.signal, aside === "goodbye" ? AbortSignal.timeout(GOODBYE_MS) : null];
      const headers = new Headers(init.headers);
      headers.set("accept-encoding", "identity");
      headers.set("user-agent", "platform");
      if (this.isCalling && !isAside) this.isSent = true;
      const answer = await this.#options.client.fetch(url, {
        method,
        body,
        headers: [...headers],
        signal: AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal)),
      });
      if (!isAside) this.status = answer.status;
      return this.#bounded(answer, this.isCalling && !isAside);
    } catch (error) {
      if (init.signal?.aborted === true) throw error;
      throw isAside ? error : this.#failed(error);
    }
  };

  /** Ends the exchange. A connection that was refused here, or was not made, carried nothing. */
  #failed(error: unknown): WireFault | NetFault {
    const fault = error instanceof NetFault ? error : new WireFault(exchangeFault(error));
    if (error instanceof WireFault || (fault instanceof NetFault && fault.isUnsent)) this.isSent = false;
    this.fail(fault);
    return fault;
  }

  /** The answer, whose bytes are counted as they are decoded. @param isCall it has the result of the call */
  #bounded(answer: NetResponse, isCall: boolean): Response {
    const { status, statusText, body } = answer;
    const headers = new Headers([...answer.headers]);
    headers.delete("content-encoding");
    headers.delete("content-length");
    const {
      maxBytes,
      url: { host },
    } = this.#options;
    if (body === null || status === 204 || status === 304)
      return new Response(null, { status, statusText, headers });
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    const boundedBody = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            if (isCall) this.#endAfterReading();
            return;
          }
          this.#bytes += value.byteLength;
          if (this.#bytes > maxBytes) throw new NetFault(host, { _tag: "TooLarge", maxBytes });
          controller.enqueue(value);
        } catch (error) {
          const fault = toFault(error, { host });
          await reader.cancel().catch(() => undefined);
          if (fault instanceof NetFault) this.fail(fault);
          controller.error(fault);
        }
      },
      cancel: () => reader.cancel().catch(() => undefined),
    });
    return new Response(boundedBody, { status, statusText, headers });
  }

  /** If the whole answer has arrived and has no result, none will come. */
  #endAfterReading(): void {
    // oxlint-disable-next-line no-restricted-globals -- an adapter, below Effect
    setTimeout(() => this.fail(new WireFault("closed the connection without a result")), READ_MS).unref();
  }
}
