/**
 * HTTP to the servers of connectors: where a request may connect (U1, U2 of src/connectors/port.ts), and for the client of MCP servers a
 * `fetch` for one exchange with one server, which bounds what it reads (U3). It opens no stream for messages beside its requests.
 */
import { lookup, type LookupAddress, type LookupAllOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, fetch as send, type Dispatcher } from "undici";
import { isPrivateAddress } from "../domain/repository.ts";

const CONNECT_MS = 10_000;
/** How long an answer may pause between two bytes. The exchange has a deadline of its own. */
const IDLE_MS = 60_000;
const CONNECTIONS = 64;
/** How long the server gets to hear that a session is over. */
const GOODBYE_MS = 2000;
/** How long the client may take to read an answer that has arrived. */
const READ_MS = 1000;

const PRIVATE = "EPRIVATE";

const MISDIRECTED = "EMISDIRECTED";

/** Errors before a connection stands, or after which the server did nothing. */
const UNMADE = new Set([
  PRIVATE,
  MISDIRECTED,
  "ENOTFOUND",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Why an exchange failed, as part of a sentence about the server. */
export class WireFault extends Error {
  readonly why: string;
  constructor(why: string) {
    super(why);
    this.why = why;
  }
}

/** How names are resolved: as node:dns does. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  found: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Resolves and checks a name once: exactly the checked addresses are dialled (U2 of src/connectors/port.ts). A private address among public ones is a
 * rebinding attempt or a split network. Neither is dialled.
 */
export const checkedLookup =
  (allowHosts: ReadonlySet<string>, resolve: Resolve = lookup): LookupFunction =>
  (host, options, found) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return found(error, []);
      const [first] = addresses;
      const isOpen =
        allowHosts.has(host.toLowerCase()) || !addresses.some(({ address }) => isPrivateAddress(address));
      if (first === undefined || !isOpen)
        return found(Object.assign(new Error(PRIVATE), { code: PRIVATE }), []);
      return options.all === true ? found(null, addresses) : found(null, first.address, first.family);
    });
  };

export const makeAgent = (allowHosts: ReadonlySet<string>, resolve?: Resolve): Agent =>
  new Agent({
    connect: { lookup: checkedLookup(allowHosts, resolve), timeout: CONNECT_MS },
    connections: CONNECTIONS,
    pipelining: 1,
    headersTimeout: IDLE_MS,
    bodyTimeout: IDLE_MS,
  });

/** How requests reach servers. */
export interface Connecting {
  readonly agent: Agent;
  /** Hosts that may have a private address, or plain http. In lower case. */
  readonly allowHosts: ReadonlySet<string>;
}

/** A dispatcher for one request (U4 of src/connectors/port.ts): by itself, `fetch` sends a request again that was answered with status 421. */
export const sentOnce = (agent: Agent): Dispatcher => {
  let isSent = false;
  return agent.compose((dispatch) => (options, handler) => {
    if (isSent) throw Object.assign(new Error(MISDIRECTED), { code: MISDIRECTED });
    isSent = true;
    return dispatch(options, handler);
  });
};

const setting = "The operator can allow it in PLATFORM_CONNECTOR_ALLOW_HOSTS";

/** Node resolves no address, so a literal one is checked here. @throws WireFault for a host that is not dialled. */
export const checkHost = (url: URL, allowHosts: ReadonlySet<string>): void => {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (allowHosts.has(host)) return;
  if (url.protocol !== "https:")
    throw new WireFault(`is not reached, because its URL is not https. ${setting}`);
  if (isIP(host) !== 0 && isPrivateAddress(host)) throw new WireFault(`has a private address. ${setting}`);
};

const codeOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "";
};

/** Whether a request that failed certainly did nothing at its server. */
export const isUnmade = (error: unknown): boolean => UNMADE.has(codeOf(error));

/** Why a request failed, as part of a sentence about its host. */
export const reasonOf = (error: unknown): string => {
  const code = codeOf(error);
  switch (code) {
    case PRIVATE:
      return `has a private address. ${setting}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "cannot be resolved";
    case "ECONNREFUSED":
      return "refuses connections";
    case "UND_ERR_SOCKET":
    case "ECONNRESET":
      return "closed the connection";
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return "did not answer in time";
    case MISDIRECTED:
      return "answered with status 421: it does not serve this host";
    case "":
      return "cannot be reached";
    default:
      return `cannot be reached (${code})`;
  }
};

export interface ExchangeOptions {
  readonly agent: Agent;
  readonly allowHosts: ReadonlySet<string>;
  /** The URL of the server. Requests to another origin are refused. */
  readonly url: URL;
  /** For all answers together, decoded. */
  readonly maxBytes: number;
}

/** One exchange with a server: some requests, one of which matters. */
export class Exchange {
  /** Rejects when an answer breaks off, ends without a message, or is too large. */
  readonly broken: Promise<never>;
  /** The status of the last request that was answered. */
  status: number | null = null;
  /** Set when a request whose repetition would matter has been handed to the network. */
  isSent = false;
  /** True while the request that matters is under way. */
  isCalling = false;
  readonly #options: ExchangeOptions;
  /** Ends the exchange with this fault, if it has not ended. */
  readonly fail: (fault: WireFault) => void;
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
    const { agent, allowHosts } = this.#options;
    if (url.origin !== this.#options.url.origin)
      throw this.#failed(new WireFault("redirects to another origin"));
    try {
      checkHost(url, allowHosts);
      const signals = [init.signal, method === "DELETE" ? AbortSignal.timeout(GOODBYE_MS) : null];
      const headers = new Headers(init.headers);
      headers.set("accept-encoding", "identity");
      headers.set("user-agent", "platform");
      if (this.isCalling) this.isSent = true;
      const answer = await send(url, {
        method,
        // The client sends JSON.
        body: typeof init.body === "string" ? init.body : null,
        headers: [...headers],
        redirect: "manual",
        signal: AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal)),
        dispatcher: sentOnce(agent),
      });
      this.status = answer.status;
      return this.#bounded(answer);
    } catch (error) {
      if (init.signal?.aborted === true) throw error;
      throw method === "DELETE" ? error : this.#failed(error);
    }
  };

  /** Ends the exchange. A connection that was refused here, or was not made, carried nothing. */
  #failed(error: unknown): WireFault {
    const isRefused = error instanceof WireFault;
    if (isRefused || isUnmade(error)) this.isSent = false;
    const fault = isRefused ? error : new WireFault(reasonOf(error));
    this.fail(fault);
    return fault;
  }

  /** The answer, whose bytes are counted as they are decoded. */
  #bounded(answer: Awaited<ReturnType<typeof send>>): Response {
    const { status, statusText, body } = answer;
    const headers = new Headers([...answer.headers]);
    headers.delete("content-encoding");
    headers.delete("content-length");
    const isCalling = this.isCalling;
    const { maxBytes } = this.#options;
    if (body === null || status === 204 || status === 304)
      return new Response(null, { status, statusText, headers });
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    const bounded = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            if (isCalling) this.#endAfterReading();
            return;
          }
          this.#bytes += value.byteLength;
          if (this.#bytes > maxBytes) throw new WireFault(`answered with more than ${maxBytes} bytes`);
          controller.enqueue(value);
        } catch (error) {
          const fault = error instanceof WireFault ? error : new WireFault("closed the connection");
          await reader.cancel().catch(() => undefined);
          this.fail(fault);
          controller.error(fault);
        }
      },
      cancel: () => reader.cancel().catch(() => undefined),
    });
    return new Response(bounded, { status, statusText, headers });
  }

  /** If the whole answer has arrived and has no result, none will come. */
  #endAfterReading(): void {
    // oxlint-disable-next-line no-restricted-globals -- an adapter, below Effect
    setTimeout(() => this.fail(new WireFault("closed the connection without a result")), READ_MS).unref();
  }
}
