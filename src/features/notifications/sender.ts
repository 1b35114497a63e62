/**
 * Sends requests to receivers outside, without any decision about them (threats.md O01).
 *
 *  X1 Each connection is made as src/ground/net/dial.ts says.
 *  X2 Only a host that the operator allows may have a private address, or one of this machine's own.
 *  X3 No redirect is followed. An answer costs at most a time limit, and a kilobyte of its body is read.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { OutboundAnswer, OutboundRequest, SendOutbound } from "./ports/outbound-sender.ts";
import { ANSWER_KEPT, TRY_TIMEOUT_MS } from "./rules/outbound-tries.ts";
import { trustedHosts } from "../../ground/net/address.ts";
import { type NetClient, openClient, readStart } from "../../ground/net/client.ts";
import type { Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { ownAddresses } from "../../ground/net/own-addresses.ts";

export interface SenderOptions {
  /** Lower-case hosts of PLATFORM_WEBHOOK_ALLOW_HOSTS. */
  readonly allowHosts: readonly string[];
  readonly network?: Network;
  /** The addresses of this machine. */
  readonly own?: () => readonly string[];
  /** From the request to the answer, in ms. */
  readonly timeoutMs?: number;
}

const firstValue = (value: string | readonly string[] | undefined): string | null =>
  (typeof value === "string" ? value : value?.[0]) ?? null;

interface Exchange {
  readonly client: NetClient;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const exchange = async (
  { url, headers, body }: OutboundRequest,
  { client, timeoutMs, signal }: Exchange,
): Promise<OutboundAnswer> => {
  const start = performance.now();
  const tookMs = () => performance.now() - start;
  try {
    const answer = await client.request({
      url: new URL(url),
      method: "POST",
      headers: { ...headers, "accept-encoding": "identity" },
      body,
      signal,
      withinMs: timeoutMs,
    });
    return {
      status: answer.statusCode,
      error: null,
      body: await readStart(answer.body, ANSWER_KEPT),
      retryAfter: firstValue(answer.headers["retry-after"]),
      tookMs: tookMs(),
    };
  } catch (error) {
    const why = error instanceof NetFault ? error.why : "cannot be reached";
    const none = { status: null, body: new Uint8Array(), retryAfter: null };
    return { ...none, error: `The receiver ${why}.`, tookMs: tookMs() };
  }
};

/** Opens a sender in the caller's scope, whose end closes its connections. */
export const makeSender = ({
  allowHosts,
  own = ownAddresses,
  network,
  timeoutMs = TRY_TIMEOUT_MS,
}: SenderOptions): Effect.Effect<SendOutbound, never, Scope.Scope> =>
  Effect.map(
    openClient({
      ...network,
      allowances: { ...trustedHosts(allowHosts, "PLATFORM_WEBHOOK_ALLOW_HOSTS"), own },
      connectMs: 10_000,
      silentMs: timeoutMs,
      connections: 64,
      keepAliveMs: 10_000,
    }),
    (client) => (request) => Effect.promise((signal) => exchange(request, { client, timeoutMs, signal })),
  );
