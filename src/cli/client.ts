/**
 * The API over HTTP, typed by its definitions. Nothing but node:http, and TLS where the address wants it: a sandbox calls
 * this often, and it must start at once. Node's own agent takes the proxy of a
 * sandbox from the environment, NO_PROXY included.
 */
import * as http from "node:http";
import type { Answer, Request, Route } from "./contract.ts";
import { EXIT, exitOf, Failure, type Details } from "./failure.ts";

/** Who is asked, as whom. */
export interface Connection {
  /** With `/v1`, without a slash at its end. */
  readonly apiUrl: string;
  readonly token: string;
  /** HTTP_PROXY, NO_PROXY and so on. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** An answer twice: to be looked into, and to be printed as it came. */
export interface Answered<A> {
  readonly value: A;
  readonly text: string;
}

/** For the connection; a packet that is lost is sent anew after one and three seconds. */
const CONNECT_MS = 10_000;
/** Without a byte. Importing a large repository is answered when it is done. */
const SILENCE_MS = 15 * 60_000;
/** The longest of our answers, a log or a diff, is a megabyte. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

const unreachable = (url: URL, reason: string): Failure =>
  new Failure(EXIT.tryAgain, "unreachable", {
    message: `The service at ${url.origin} cannot be reached: ${reason}.`,
  });

/** What a person can do something about; the rest is said as Node says it. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ENOTFOUND: "the host name does not exist",
  EAI_AGAIN: "the host name cannot be resolved now",
  ECONNRESET: "the connection was closed",
};

const reasonOf = (error: NodeJS.ErrnoException): string =>
  REASONS[error.code ?? ""] ?? (error.message === "" ? (error.code ?? "no reason given") : error.message);

interface Sent {
  readonly method: string;
  /** Below the API's address. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Loading TLS takes longer than all the rest. */
const libraryFor = async (url: URL): Promise<Pick<typeof http, "Agent" | "request">> =>
  url.protocol === "https:" ? await import("node:https") : http;

const open = async (
  { apiUrl, token, environment }: Connection,
  sent: Sent,
): Promise<http.IncomingMessage> => {
  const url = new URL(apiUrl);
  const { Agent, request } = await libraryFor(url);
  const body = sent.body === undefined ? undefined : JSON.stringify(sent.body);
  return await new Promise((resolve, reject) => {
    const call = request({
      method: sent.method,
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      path: url.pathname + sent.path,
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json",
        ...(body !== undefined && {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
        }),
        ...sent.headers,
      },
      timeout: CONNECT_MS,
      agent: new Agent({ keepAlive: false, proxyEnv: environment }),
    });
    call.on("socket", (socket) => socket.once("connect", () => call.setTimeout(SILENCE_MS)));
    call.on("timeout", () => call.destroy(new Error("it does not respond")));
    call.on("error", (error) => reject(unreachable(url, reasonOf(error))));
    call.on("response", resolve);
    call.end(body);
  });
};

const wholeText = async (answer: http.IncomingMessage, url: URL): Promise<string> => {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > ANSWER_BYTES_MAX) throw new Error("its answer is too long");
      chunks.push(chunk);
    }
  } catch (error) {
    throw unreachable(url, reasonOf(error as NodeJS.ErrnoException));
  }
  return Buffer.concat(chunks).toString("utf8");
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

interface ErrorShape {
  readonly error: string;
  readonly code: string;
  readonly details?: Details;
}
const isErrorShape = (value: unknown): value is ErrorShape =>
  typeof value === "object" && value !== null && "error" in value && "code" in value &&
  typeof value.error === "string" && typeof value.code === "string"; // prettier-ignore

/** Somebody answers there, and not as our API does: a proxy's page, or another service. */
const stranger = (url: URL, answer: http.IncomingMessage): Failure => {
  const status = answer.statusCode ?? 0;
  const { location } = answer.headers;
  const where = location === undefined ? "" : `, redirects to ${location}`;
  return new Failure(status >= 500 ? EXIT.tryAgain : EXIT.refused, "not_the_api", {
    message: `The server at ${url.origin} is not the platform's API (status ${status}${where}). Check the address.`,
  });
};

const refusal = (url: URL, answer: http.IncomingMessage, text: string): Failure => {
  const body = parsed(text);
  if (!isErrorShape(body)) return stranger(url, answer);
  const { error: message, code, details } = body;
  return new Failure(exitOf(answer.statusCode ?? 0), code, { message, ...(details && { details }) });
};

const isGood = ({ statusCode = 0 }: http.IncomingMessage): boolean => statusCode >= 200 && statusCode < 300;

type Parts = Readonly<Record<string, unknown>>;

/** A route's path below `/v1`, its variables filled in. */
const pathOf = (
  path: string,
  { params = {}, query = {} }: { readonly params?: Parts; readonly query?: Parts },
) => {
  const filled = path
    .replace(/^\/v1/, "")
    .replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  ).toString();
  return search === "" ? filled : `${filled}?${search}`;
};

export class Client {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Asks an endpoint. @throws Failure with the API's own sentence where it refuses */
  async call<R extends Route>(route: R, request: Request<R>): Promise<Answered<Answer<R>>> {
    const [method = "", path = ""] = route.split(" ");
    const { params, query, payload } = request as { params?: Parts; query?: Parts; payload?: unknown };
    const target = pathOf(path, { ...(params && { params }), ...(query && { query }) });
    const { answer, text } = await this.#text({ method, path: target, body: payload });
    const isText = answer.headers["content-type"]?.startsWith("text/plain") ?? false;
    // Deleting is answered with nothing.
    const value = isText ? text : text === "" ? {} : parsed(text);
    if (value === undefined) throw stranger(new URL(this.#connection.apiUrl), answer);
    return { value: value as Answer<R>, text: isText ? JSON.stringify(text) : text === "" ? "{}" : text };
  }

  /** A path below `/v1` that is answered with text. */
  async text(path: string): Promise<string> {
    return (await this.#text({ method: "GET", path })).text;
  }

  /** A live stream, as it comes. */
  async stream(path: string, headers: Readonly<Record<string, string>>): Promise<AsyncIterable<Buffer>> {
    const answer = await open(this.#connection, { method: "GET", path, headers });
    const url = new URL(this.#connection.apiUrl);
    if (!isGood(answer)) throw refusal(url, answer, await wholeText(answer, url));
    return answer;
  }

  async #text(sent: Sent) {
    const url = new URL(this.#connection.apiUrl);
    const answer = await open(this.#connection, sent);
    const text = await wholeText(answer, url);
    if (!isGood(answer)) throw refusal(url, answer, text);
    return { answer, text };
  }
}
