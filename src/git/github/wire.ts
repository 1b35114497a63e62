/**
 * One HTTP exchange with a code host's API, without any decision. The checked address is the one that is dialled
 * (threats.md G03), no redirect is followed, and an answer's time and size are bounded.
 */
import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { Agent, type Dispatcher, request as send } from "undici";
import { isPrivateAddress } from "../../domain/repository.ts";

export interface WireRequest {
  readonly method: "GET" | "POST" | "PATCH" | "PUT";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly maxBytes: number;
  /** Milliseconds from the request to the answer's last byte. */
  readonly deadlineMs: number;
}

export interface WireAnswer {
  readonly status: number;
  /** Names in lower case. For a repeated header, the first value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Why there is no answer, as part of a sentence. The host may or may not have performed the call. */
export interface NoAnswer {
  readonly _tag: "NoAnswer";
  readonly why: string;
}

export type Wire = (request: WireRequest) => Effect.Effect<WireAnswer, NoAnswer>;

/** As many as a browser opens to one host, and some for slow requests. */
const CONNECTIONS = 16;
const CONNECT_MS = 10_000;

const privateAddress = "EPRIVATE";

/** Resolves a host for the connection, which then dials exactly the checked address. */
const checkedLookup =
  (allowHosts: ReadonlySet<string>): LookupFunction =>
  (host, options, found) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return found(error, []);
      const isAllowed = allowHosts.has(host.toLowerCase());
      const open = addresses.filter(({ address }) => isAllowed || !isPrivateAddress(address));
      const [first] = open;
      if (first === undefined) return found(Object.assign(new Error(), { code: privateAddress }), []);
      return options.all === true ? found(null, open) : found(null, first.address, first.family);
    });
  };

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Error codes of undici and the system in readable words. Unknown codes are named as they are. */
const reasonOf = (error: unknown): string => {
  const code = codeOf(error);
  switch (code) {
    case privateAddress:
      return "has a private address. The operator can allow it in PLATFORM_GIT_ALLOW_HOSTS";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "cannot be resolved";
    case "ECONNREFUSED":
      return "refuses connections";
    case "UND_ERR_CONNECT_TIMEOUT":
      return "cannot be reached";
    case "UND_ERR_SOCKET":
    case "ECONNRESET":
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return "closed the connection";
    case "":
      return "cannot be reached";
    default:
      return `cannot be reached (${code})`;
  }
};

const noAnswer = (why: string): NoAnswer => ({ _tag: "NoAnswer", why });

const headersOf = (headers: Dispatcher.ResponseData["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const [first] = Array.isArray(value) ? value : [value];
      return first === undefined ? [] : [[name.toLowerCase(), first]];
    }),
  );

class TooLong extends Error {}

const textOf = async (body: Dispatcher.ResponseData["body"], maxBytes: number): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) throw new TooLong(); // leaving the loop ends the connection
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** @param allowHosts lower-case hosts whose private addresses may be dialled. */
export const makeWire = (allowHosts: readonly string[]): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(
        () =>
          new Agent({
            connect: { lookup: checkedLookup(new Set(allowHosts)), timeout: CONNECT_MS },
            connections: CONNECTIONS,
            pipelining: 1,
          }),
      ),
      (agent) => Effect.promise(() => agent.destroy()),
    ),
    (agent): Wire =>
      ({ method, url, headers, body, maxBytes, deadlineMs }) =>
        Effect.tryPromise({
          try: async (signal) => {
            const answer = await send(url, { dispatcher: agent, method, headers, body, signal });
            const text = await textOf(answer.body, maxBytes);
            return { status: answer.statusCode, headers: headersOf(answer.headers), text };
          },
          catch: (error) =>
            noAnswer(
              error instanceof TooLong ? `answered with more than ${maxBytes} bytes` : reasonOf(error),
            ),
        }).pipe(
          Effect.timeoutOrElse({
            duration: deadlineMs,
            orElse: () => Effect.fail(noAnswer(`did not answer within ${deadlineMs / 1000} s`)),
          }),
        ),
  );
