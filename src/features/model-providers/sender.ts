/** The way to providers' servers, by the guarded client (src/ground/net/client.ts), without any decision about them. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { trustedHosts } from "../../ground/net/address.ts";
import { type NetClient, openClient, readBody, redirectIn } from "../../ground/net/client.ts";
import type { Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { ownAddresses } from "../../ground/net/own-addresses.ts";
import type { ModelServersPort, Unreached } from "./ports/model-servers.ts";

/** How long a model may be silent before a call ends, ms: the same as in the sandboxes' way out. */
const SILENT_MS = 900_000;
/** A list of models has up to some hundred kilobytes. */
const READ_BYTES = 4 * 1024 * 1024;
const READ_MS = 15_000;

const toUnreached = (error: unknown): Unreached =>
  error instanceof NetFault
    ? { why: error.why, discreetWhy: error.discreetWhy, isLate: error.reason._tag === "Late" }
    : { why: "cannot be reached", discreetWhy: "cannot be reached", isLate: false };

const over = (client: NetClient): ModelServersPort => ({
  call: ({ base, path, method, headers, body, left }) =>
    Effect.tryPromise({
      try: async () => {
        const answer = await client.request({ url: base, path, method, headers, body, signal: left });
        return { status: answer.statusCode, headers: answer.headers, body: answer.body };
      },
      catch: toUnreached,
    }),
  check: (url) => Effect.tryPromise({ try: () => client.check(url), catch: toUnreached }),
  read: (url, headers) =>
    Effect.tryPromise({
      try: async (signal) => {
        const answer = await client.request({ url, headers, signal, withinMs: READ_MS });
        const limits = { host: url.hostname, maxBytes: READ_BYTES, withinMs: READ_MS };
        const text = (await readBody(answer.body, limits)).toString("utf8");
        return { status: answer.statusCode, text, redirect: redirectIn(answer, url) };
      },
      catch: toUnreached,
    }),
});

/** Opens the way in the caller's scope. @param allowHosts PLATFORM_CONNECTOR_ALLOW_HOSTS */
export const makeModelServers = (
  allowHosts: readonly string[],
  network: Network = {},
): Effect.Effect<ModelServersPort, never, Scope.Scope> =>
  Effect.map(
    openClient({
      ...network,
      allowances: { ...trustedHosts(allowHosts, "PLATFORM_CONNECTOR_ALLOW_HOSTS"), own: ownAddresses },
      connectMs: 10_000,
      silentMs: SILENT_MS,
      connections: 256,
      keepAliveMs: 10_000,
    }),
    over,
  );
