/**
 * HTTP to hosts that someone else may have named. Each connection is made by `dial` (N1 to N3 of dial.ts), to a literal
 * address too. Beside it:
 *
 *  C1 Plain HTTP goes only to hosts that the operator trusts.
 *  C2 A request is sent once. A redirect is an answer, except for `follow`, which asks its caller about each step and
 *     sends credentials to their own origin only.
 *  C3 Every failure is a NetFault, except an abort by the caller.
 */
import { isIP } from "node:net";
import type { Readable } from "node:stream";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import {
  Agent,
  buildConnector,
  type Dispatcher,
  fetch as send,
  type RequestInit,
  type Response,
} from "undici";
import { isTrustedHost, withoutBrackets } from "./address.ts";
import { checkHost, dial, type DialOptions } from "./dial.ts";
import { errorCode, NetFault, toFault } from "./fault.ts";

export interface ClientOptions extends DialOptions {
  /** Without a byte of an answer, in milliseconds. */
  readonly silentMs: number;
  /** How many connections to one origin are open at the same time. */
  readonly connections: number;
  /** An idle connection is kept for this time, in milliseconds. */
  readonly keepAliveMs?: number;
}

export interface NetRequest {
  readonly url: URL;
  /** As the client wrote it, if the server has to see that. Absent: that of the URL. */
  readonly path?: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Readable | string | null;
  readonly signal?: AbortSignal;
  /** From the request to the answer's last byte, in milliseconds. */
  readonly withinMs?: number;
}

/** An answer whose body arrives as it is read. */
export type NetAnswer = Dispatcher.ResponseData;

export interface Redirects {
  readonly limit: number;
  /** Whether the place that a server redirects to may be asked. */
  readonly mayAsk: (url: URL) => boolean;
}

export interface FetchOptions extends Omit<RequestInit, "dispatcher" | "redirect" | "signal"> {
  readonly signal?: AbortSignal;
  /** From the request to the answer's last byte, in milliseconds. */
  readonly withinMs?: number;
}

const requestSignal = ({ signal, withinMs }: Pick<NetRequest, "signal" | "withinMs">): AbortSignal =>
  AbortSignal.any([
    ...(signal === undefined ? [] : [signal]),
    ...(withinMs === undefined ? [] : [AbortSignal.timeout(withinMs)]),
  ]);

/** C2: by itself, `fetch` sends a request again that was answered with status 421. */
const sentOnce = (agent: Agent, host: string): Dispatcher => {
  let isSent = false;
  return agent.compose((dispatch) => (options, handler) => {
    if (isSent) throw new NetFault(host, { _tag: "Misdirected" });
    isSent = true;
    return dispatch(options, handler);
  });
};

const secureConnector = (options: DialOptions): buildConnector.connector => {
  const encrypt = buildConnector({ timeout: options.connectMs, allowH2: false });
  return (wish, callback) => {
    const host = withoutBrackets(wish.hostname);
    const isSecure = wish.protocol === "https:";
    const port = Number(wish.port) || (isSecure ? 443 : 80);
    dial({ host, port }, options).then(
      (socket) => {
        if (!isSecure) return callback(null, socket);
        // Addresses are not sent as names (RFC 6066, 3), and names without the dot at their end.
        const servername = isIP(host) === 0 ? { servername: host.replace(/\.$/, "") } : {};
        return encrypt(
          { ...wish, hostname: host, httpSocket: socket, ...servername },
          (...[error, secured]) =>
            error === null
              ? callback(null, secured)
              : callback(new NetFault(host, { _tag: "Tls", code: errorCode(error) }), null),
        );
      },
      (error: Error) => callback(error, null),
    );
  };
};

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

/** The place that an answer redirects to. */
export const redirectIn = ({ statusCode, headers }: NetAnswer, base: URL): URL | null => {
  const { location } = headers;
  return REDIRECT_STATUS.has(statusCode) && typeof location === "string"
    ? URL.parse(location, base.href)
    : null;
};

const withoutCredentials = ({
  authorization: _authorization,
  cookie: _cookie,
  ...headers
}: NetRequest["headers"]): NetRequest["headers"] => headers;

/** Reads a body, up to a limit in bytes. @throws NetFault */
export const readBody = async (
  body: AsyncIterable<unknown> | null,
  {
    host,
    maxBytes,
    withinMs,
  }: { readonly host: string; readonly maxBytes: number; readonly withinMs?: number | undefined },
): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      // Leaving the loop ends the connection.
      if (size > maxBytes) throw new NetFault(host, { _tag: "TooLarge", maxBytes });
      chunks.push(chunk);
    }
  } catch (error) {
    throw toFault(error, { host, withinMs });
  }
  return Buffer.concat(chunks);
};

/** The first bytes of a body. Where it breaks off or takes too long, what came before. */
export const readStart = async (body: AsyncIterable<unknown> | null, bytes: number): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.byteLength;
      // Leaving the loop ends the connection.
      if (size >= bytes) break;
    }
  } catch {
    // The caller has the status, and no need of the rest.
  }
  return Buffer.concat(chunks).subarray(0, bytes);
};

export class NetClient {
  readonly #agent: Agent;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    const { connections, silentMs, keepAliveMs } = options;
    this.#options = options;
    this.#agent = new Agent({
      connect: secureConnector(options),
      connections,
      pipelining: 1,
      allowH2: false,
      headersTimeout: silentMs,
      bodyTimeout: silentMs,
      ...(keepAliveMs !== undefined && { keepAliveTimeout: keepAliveMs }),
    });
  }

  /** Whether the operator trusts a host: any of its addresses, and plain HTTP. */
  isTrusted(host: string): boolean {
    return isTrustedHost(host, this.#options.allowances);
  }

  /** Ends every connection. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** Whether a request would be sent to this place, which gets none. @throws NetFault */
  async check(url: URL): Promise<void> {
    this.#requireTls(url);
    await checkHost(url.hostname, this.#options);
  }

  /** Sends one request, whose answer is as the server sent it. @throws NetFault */
  async request(request: NetRequest): Promise<NetAnswer> {
    const { url, path, method = "GET", headers, body = null, withinMs } = request;
    this.#requireTls(url);
    try {
      return await this.#agent.request({
        origin: url.origin,
        path: path ?? `${url.pathname}${url.search}`,
        method: method as Dispatcher.HttpMethod,
        headers: { ...headers, host: url.host },
        body,
        signal: requestSignal(request),
      });
    } catch (error) {
      throw toFault(error, { host: url.hostname, withinMs });
    }
  }

  /** Sends a request and follows its redirects. @throws NetFault */
  async follow(request: NetRequest, redirects: Redirects): Promise<NetAnswer> {
    const { url, headers } = request;
    const { limit, mayAsk } = redirects;
    const answer = await this.request(request);
    const next = redirectIn(answer, url);
    if (next === null) return answer;
    answer.body.on("error", () => undefined).destroy();
    const redirect = { _tag: "Redirect", to: next.host } as const;
    if (limit === 0) throw new NetFault(url.hostname, { ...redirect, kind: "too often" });
    if (!mayAsk(next)) throw new NetFault(url.hostname, { ...redirect, kind: "refused" });
    const { path: _path, ...rest } = request;
    return this.follow(
      {
        ...rest,
        url: next,
        headers: next.origin === url.origin ? headers : withoutCredentials(headers),
      },
      { limit: limit - 1, mayAsk },
    );
  }

  /** Sends one request. Its answer is decoded as browsers do. @throws NetFault */
  async fetch(url: URL, options: FetchOptions): Promise<Response> {
    const { withinMs, signal: _signal, ...init } = options;
    this.#requireTls(url);
    try {
      return await send(url, {
        ...init,
        redirect: "manual",
        signal: requestSignal(options),
        dispatcher: sentOnce(this.#agent, url.hostname),
      });
    } catch (error) {
      throw toFault(error, { host: url.hostname, withinMs });
    }
  }

  /** C1 */
  #requireTls({ protocol, hostname }: URL): void {
    if (protocol !== "https:" && !this.isTrusted(hostname))
      throw new NetFault(hostname, { _tag: "PlainHttp", setting: this.#options.allowances.setting });
  }
}

/** Opens a client in the caller's scope, whose end closes its connections. */
export const openClient = (options: ClientOptions): Effect.Effect<NetClient, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new NetClient(options)),
    (client) => Effect.promise(() => client.close()),
  );
