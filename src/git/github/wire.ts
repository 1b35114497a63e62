/**
 * One HTTP exchange with a code host's API, without any decision. No redirect is followed, and an answer's time and size
 * are bounded (src/ground/net/client.ts).
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { trustedHosts } from "../../ground/net/address.ts";
import { type NetAnswer, openClient, readBody } from "../../ground/net/client.ts";
import type { Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";

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

const plainHeaders = (headers: NetAnswer["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const [first] = Array.isArray(value) ? value : [value];
      return first === undefined ? [] : [[name.toLowerCase(), first]];
    }),
  );

/** @param allowHosts hosts whose private addresses may be dialled (PLATFORM_GIT_ALLOW_HOSTS). */
export const makeWire = (
  allowHosts: readonly string[],
  network: Network = {},
): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.map(
    openClient({
      ...network,
      allowances: trustedHosts(allowHosts, "PLATFORM_GIT_ALLOW_HOSTS"),
      connectMs: 10_000,
      // Each request has a deadline of its own.
      silentMs: 300_000,
      // As many as a browser opens to one host, and some for slow requests.
      connections: 16,
    }),
    (client): Wire =>
      ({ url, maxBytes, deadlineMs: withinMs, ...request }) =>
        Effect.tryPromise({
          try: async (signal) => {
            const place = new URL(url);
            const answer = await client.request({ ...request, url: place, withinMs, signal });
            const body = await readBody(answer.body, { host: place.host, maxBytes, withinMs });
            return {
              status: answer.statusCode,
              headers: plainHeaders(answer.headers),
              text: body.toString("utf8"),
            };
          },
          catch: (error) => ({
            _tag: "NoAnswer",
            why: error instanceof NetFault ? error.why : "cannot be reached",
          }),
        }),
  );
