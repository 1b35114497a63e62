/**
 * Requests to registries, for sandboxes.
 *
 *  U1 A host is resolved once for each connection. The address is checked, and exactly that address is dialled.
 *  U2 Only a host that the operator allows may have a private address, or plain HTTP.
 *  U3 A redirect is followed only for files that are kept, and each step meets the same checks as the first.
 *  U4 Credentials go to the origin for which the sandbox gave them, and to no other.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import type { Readable } from "node:stream";
import { Agent, buildConnector, type Dispatcher } from "undici";
import { Refusal } from "../egress-messages.ts";
import { AddressRefusal, addressesOf, publicAddress, type Resolve } from "../public-address.ts";

export interface UpstreamOptions {
  /** Lower-case hosts that may have a private address, or plain HTTP (those of the registries that the operator named). */
  readonly allowHosts: readonly string[];
  /** Tests resolve without a network. */
  readonly resolve?: Resolve;
  readonly limits?: UpstreamLimits;
}

export interface UpstreamLimits {
  /** To resolve and to connect, in milliseconds. */
  readonly connectMs: number;
  /** Without a byte of an answer, in milliseconds. */
  readonly silentMs: number;
}

const LIMITS: UpstreamLimits = { connectMs: 10_000, silentMs: 60_000 };
/** How many connections to one registry are open at the same time. */
const CONNECTIONS = 128;
/** An idle connection is kept for so long, in milliseconds. */
const KEEP_ALIVE_MS = 10_000;
const REDIRECTS = 5;

export interface Asked {
  readonly url: URL;
  /** As the client wrote it, if the server has to see that. Absent: that of the URL. */
  readonly path?: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Readable | null;
  readonly signal: AbortSignal;
}

export type Answered = Dispatcher.ResponseData;

/** The headers with which a sandbox shows who it is. */
export const credentialsOf = ({ authorization, cookie }: IncomingHttpHeaders): Record<string, string> => ({
  ...(authorization !== undefined && { authorization }),
  ...(cookie !== undefined && { cookie }),
});

const unbracketed = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

export class Upstream {
  readonly #agent: Agent;
  readonly #options: UpstreamOptions;
  readonly #limits: UpstreamLimits;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    this.#agent = new Agent({
      connect: this.#connector(),
      connections: CONNECTIONS,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: this.#limits.silentMs,
      bodyTimeout: this.#limits.silentMs,
    });
  }

  /** Ends every connection. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /**
   * Sends one request. A redirect is an answer like any other.
   * @throws Refusal
   */
  async ask({ url, path, method = "GET", headers, body = null, signal }: Asked): Promise<Answered> {
    if (url.protocol !== "https:" && !this.#isAllowed(url.hostname))
      throw new Refusal(403, `${url.hostname} is not reached over plain HTTP`);
    try {
      return await this.#agent.request({
        origin: url.origin,
        path: path ?? `${url.pathname}${url.search}`,
        method: method as Dispatcher.HttpMethod,
        headers: { ...headers, host: url.host },
        body,
        signal,
      });
    } catch (error) {
      throw this.#refusal(url.hostname, error);
    }
  }

  /**
   * Follows redirects to a file.
   * @param mayAsk whether the sandbox may reach a host
   * @param left how many redirects it follows
   * @throws Refusal if a step leads to a host that the sandbox may not reach, or in a circle
   */
  async follow(asked: Asked, mayAsk: (url: URL) => boolean, left = REDIRECTS): Promise<Answered> {
    const { url } = asked;
    if (!mayAsk(url)) throw new Refusal(403, `${url.hostname} is not on the list of allowed hosts`);
    const answer = await this.ask(asked);
    const next = redirectOf(answer, url);
    if (next === null) return answer;
    answer.body.on("error", () => undefined).destroy();
    if (left === 0) throw new Refusal(502, `${url.hostname} redirects too often`);
    const headers = next.origin === url.origin ? asked.headers : withoutCredentials(asked.headers);
    return this.follow({ ...asked, url: next, headers }, mayAsk, left - 1);
  }

  #isAllowed(host: string): boolean {
    return this.#options.allowHosts.includes(unbracketed(host).toLowerCase());
  }

  async #address(host: string): Promise<string> {
    const resolving = { resolve: this.#options.resolve, withinMs: this.#limits.connectMs };
    if (!this.#isAllowed(host)) return publicAddress(host, resolving);
    const [first] = await addressesOf(host, resolving);
    if (first === undefined) throw new AddressRefusal("unresolved");
    return first;
  }

  #connector(): buildConnector.connector {
    const dial = buildConnector({ timeout: this.#limits.connectMs });
    return (wanted, connected) => {
      const host = unbracketed(wanted.hostname);
      this.#address(host).then(
        (address) => {
          // Addresses are not sent as names (RFC 6066, 3).
          dial({ ...wanted, hostname: address, ...(isIP(host) === 0 && { servername: host }) }, connected);
        },
        (error: unknown) => connected(error instanceof Error ? error : new Error(String(error)), null),
      );
    };
  }

  #refusal(host: string, error: unknown): Refusal {
    if (error instanceof AddressRefusal) {
      if (error.fault === "private") return new Refusal(403, `${host} does not resolve to a public address`);
      return error.fault === "late"
        ? new Refusal(504, `${host} did not resolve in time`)
        : new Refusal(502, `${host} does not resolve`);
    }
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return /TIMEOUT|ETIMEDOUT/.test(code)
      ? new Refusal(504, `${host} did not answer in time`)
      : new Refusal(502, `${host} could not be reached`);
  }
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

const redirectOf = ({ statusCode, headers }: Answered, base: URL): URL | null => {
  const { location } = headers;
  return REDIRECT_STATUS.has(statusCode) && typeof location === "string"
    ? URL.parse(location, base.href)
    : null;
};

const withoutCredentials = ({
  authorization: _authorization,
  cookie: _cookie,
  ...headers
}: Asked["headers"]): Asked["headers"] => headers;
