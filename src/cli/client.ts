/**
 * The API over HTTP, typed by its definitions. It uses only node:http, and TLS if the address needs it: a sandbox calls
 * this often, and it must start quickly. Node's own agent takes a sandbox's proxy
 * from the environment, including NO_PROXY.
 */
import * as http from "node:http";
import type { Answer, Request, Route } from "./contract.ts";
import { EXIT, exitCode, Failure, type Details } from "./failure.ts";
import { parseJson } from "../ground/record.ts";

/** The service, and the caller's token. */
export interface Connection {
  /** With `/v1`, without a trailing slash. */
  readonly apiUrl: string;
  readonly token: string;
  /** HTTP_PROXY, NO_PROXY and so on. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The service, for a caller that has no token yet. */
export type Service = Omit<Connection, "token">;

/** An answer in two forms: decoded, and as text to print unchanged. */
export interface DecodedAnswer<A> {
  readonly value: A;
  readonly text: string;
}

/** Time limit of the connection. A lost packet is sent again after one and three seconds. */
const CONNECT_MS = 10_000;
/** Time limit without a byte. Importing a large repository answers only at its end. */
const SILENCE_MS = 15 * 60_000;
/** The longest answer of the API, a log or a diff, is a megabyte. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

const unreachable = (url: URL, reason: string): Failure =>
  new Failure(EXIT.tryAgain, "unreachable", {
    message: `The service at ${url.origin} cannot be reached: ${reason}.`,
  });

/** Errors that a person can fix. Others keep Node's text. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ENOTFOUND: "the host name does not exist",
  EAI_AGAIN: "the host name cannot be resolved now",
  ECONNRESET: "the connection was closed",
};

const errorReason = (error: NodeJS.ErrnoException): string =>
  REASONS[error.code ?? ""] ?? (error.message === "" ? (error.code ?? "no reason given") : error.message);

interface Sent {
  readonly method: string;
  /** Relative to the API's address. */
  readonly path: string;
  /** Bytes are sent as they are, a form as a form, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Loading TLS takes longer than everything else. */
const libraryFor = async (url: URL): Promise<Pick<typeof http, "Agent" | "request">> =>
  url.protocol === "https:" ? await import("node:https") : http;

/** A body as it is sent, and its type. */
const encodeBody = (body: unknown): { readonly bytes: string | Uint8Array; readonly type: string } =>
  body instanceof Uint8Array
    ? { bytes: body, type: "application/octet-stream" }
    : body instanceof URLSearchParams
      ? { bytes: body.toString(), type: "application/x-www-form-urlencoded" }
      : { bytes: JSON.stringify(body), type: "application/json" };

const open = async (
  { apiUrl, token, environment }: Service & { readonly token: string | null },
  outgoing: Sent,
): Promise<http.IncomingMessage> => {
  const url = new URL(apiUrl);
  const { Agent, request } = await libraryFor(url);
  const body = outgoing.body === undefined ? undefined : encodeBody(outgoing.body);
  return await new Promise((resolve, reject) => {
    const call = request({
      method: outgoing.method,
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      path: url.pathname + outgoing.path,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        accept: "application/json",
        ...(body !== undefined && {
          "content-type": body.type,
          "content-length": Buffer.byteLength(body.bytes),
        }),
        ...outgoing.headers,
      },
      timeout: CONNECT_MS,
      agent: new Agent({ keepAlive: false, proxyEnv: environment }),
    });
    call.on("socket", (socket) => socket.once("connect", () => call.setTimeout(SILENCE_MS)));
    call.on("timeout", () => call.destroy(new Error("it does not respond")));
    call.on("error", (error) => reject(unreachable(url, errorReason(error))));
    call.on("response", resolve);
    call.end(body?.bytes);
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
    throw unreachable(url, errorReason(error as NodeJS.ErrnoException));
  }
  return Buffer.concat(chunks).toString("utf8");
};

interface ErrorShape {
  readonly error: string;
  readonly code: string;
  readonly details?: Details;
}
const isErrorShape = (value: unknown): value is ErrorShape =>
  typeof value === "object" && value !== null && "error" in value && "code" in value &&
  typeof value.error === "string" && typeof value.code === "string"; // prettier-ignore

/** The answer does not come from our API: a proxy's page, or another service. */
const stranger = (url: URL, answer: http.IncomingMessage): Failure => {
  const status = answer.statusCode ?? 0;
  const { location } = answer.headers;
  const where = location === undefined ? "" : `, redirects to ${location}`;
  return new Failure(status >= 500 ? EXIT.tryAgain : EXIT.refused, "not_the_api", {
    message: `The server at ${url.origin} is not the platform's API (status ${status}${where}). Check the address.`,
  });
};

const refusal = (url: URL, answer: http.IncomingMessage, text: string): Failure => {
  const body = parseJson(text);
  if (!isErrorShape(body)) return stranger(url, answer);
  const { error: message, code, details } = body;
  return new Failure(exitCode(answer.statusCode ?? 0, code), code, { message, ...(details && { details }) });
};

const isGood = ({ statusCode = 0 }: http.IncomingMessage): boolean => statusCode >= 200 && statusCode < 300;

type Parts = Readonly<Record<string, unknown>>;

/** A route's path below `/v1`, with its variables filled in. */
const requestPath = (
  path: string,
  { params = {}, query = {} }: { readonly params?: Parts; readonly query?: Parts },
) => {
  const target = path
    .replace(/^\/v1/, "")
    .replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  ).toString();
  return search === "" ? target : `${target}?${search}`;
};

/**
 * Sends a form to a path below `/v1`, without a token. The answer is for the caller to judge, whatever its status is.
 *
 * @throws Failure if the service does not respond, or does not answer with a JSON object
 */
export const sendForm = async (service: Service, path: string, form: Readonly<Record<string, string>>) => {
  const url = new URL(service.apiUrl);
  const body = new URLSearchParams(form);
  const answer = await open({ ...service, token: null }, { method: "POST", path, body });
  const value = parseJson(await wholeText(answer, url));
  if (typeof value !== "object" || value === null) throw stranger(url, answer);
  return { status: answer.statusCode ?? 0, fields: value as Readonly<Record<string, unknown>> };
};

export class Client {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The address of the page, without a trailing slash. */
  get page(): string {
    return this.#connection.apiUrl.replace(/\/v1$/, "");
  }

  /** Calls an endpoint. @throws Failure with the API's own sentence if it refuses */
  async call<R extends Route>(route: R, request: Request<R>): Promise<DecodedAnswer<Answer<R>>> {
    const [method = "", path = ""] = route.split(" ");
    const { params, query, payload } = request as { params?: Parts; query?: Parts; payload?: unknown };
    const target = requestPath(path, { ...(params && { params }), ...(query && { query }) });
    const { answer, text } = await this.#text({ method, path: target, body: payload });
    const isText = answer.headers["content-type"]?.startsWith("text/plain") ?? false;
    // A deletion has an empty answer.
    const value = isText ? text : text === "" ? {} : parseJson(text);
    if (value === undefined) throw stranger(new URL(this.#connection.apiUrl), answer);
    return { value: value as Answer<R>, text: isText ? JSON.stringify(text) : text === "" ? "{}" : text };
  }

  /** Sends a file to a path below `/v1`. */
  async upload(path: string, content: Uint8Array): Promise<unknown> {
    return parseJson((await this.#text({ method: "POST", path, body: content })).text);
  }

  /** Reads a path below `/v1` whose answer is text. */
  async text(path: string): Promise<string> {
    return (await this.#text({ method: "GET", path })).text;
  }

  /** A live stream, chunk by chunk. */
  async stream(path: string, headers: Readonly<Record<string, string>>): Promise<AsyncIterable<Buffer>> {
    const answer = await open(this.#connection, { method: "GET", path, headers });
    const url = new URL(this.#connection.apiUrl);
    if (!isGood(answer)) throw refusal(url, answer, await wholeText(answer, url));
    return answer;
  }

  /** Opens a WebSocket to a path below `/v1`. */
  socket(path: string): WebSocket {
    const { apiUrl, token } = this.#connection;
    return new WebSocket(`${apiUrl.replace(/^http/, "ws")}${path}`, {
      headers: { authorization: `Bearer ${token}` },
    });
  }

  async #text(outgoing: Sent) {
    const url = new URL(this.#connection.apiUrl);
    const answer = await open(this.#connection, outgoing);
    const text = await wholeText(answer, url);
    if (!isGood(answer)) throw refusal(url, answer, text);
    return { answer, text };
  }
}

/** The request for a list, page by page. */
export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
}

export interface Page<A> {
  readonly things: readonly A[];
  /** The cursor of the next page, or null on the last one. */
  readonly next: string | null;
}

const PAGE = 200;
/** Of a list that has more than 10,000 things, the newest are read. */
const PAGES_MAX = 50;

/** The pages of a list of the API, each read when it is asked for. */
export async function* readPages<A>(
  read: (query: PageQuery) => Promise<Page<A>>,
): AsyncGenerator<readonly A[]> {
  let cursor: string | null = null;
  for (let at = 0; at < PAGES_MAX; at += 1) {
    // oxlint-disable-next-line no-await-in-loop -- a page has the cursor of the next one
    const { things, next }: Page<A> = await read({ limit: PAGE, ...(cursor !== null && { cursor }) });
    yield things;
    if (next === null) return;
    cursor = next;
  }
}
