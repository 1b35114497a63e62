/**
 * Sends requests to receivers outside, without any decision about them (threats.md O01).
 *
 *  X1 A host is resolved once for each connection. The address is checked, and exactly that address is dialled.
 *  X2 Only a host that the operator allows may have a private address, or one of this machine's own.
 *  X3 No redirect is followed. An answer costs at most a time limit, and a kilobyte of its body is read.
 */
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { Agent, buildConnector, type Dispatcher, request as send } from "undici";
import { ANSWER_KEPT, TRY_TIMEOUT_MS } from "../domain/outbound-tries.ts";
import { AddressRefusal, addressesOf, publicAddress, type Resolve } from "../sandbox/public-address.ts";

interface SenderRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
interface SenderAnswer {
  readonly status: number | null;
  readonly error: string | null;
  readonly body: Uint8Array;
  readonly retryAfter: string | null;
  readonly tookMs: number;
}

export interface SenderOptions {
  /** Lower-case hosts of PLATFORM_WEBHOOK_ALLOW_HOSTS. */
  readonly allowHosts: readonly string[];
  /** Tests resolve without a network. */
  readonly resolve?: Resolve;
  /** Opens the connection to a checked address. Tests redirect public addresses. */
  readonly dial?: buildConnector.connector;
  /** The addresses of this machine. */
  readonly own?: () => readonly string[];
  /** From the request to the answer, in ms. */
  readonly timeoutMs?: number;
}

const CONNECT_MS = 10_000;
/** An idle connection to a receiver is kept for so long. */
const KEEP_ALIVE_MS = 10_000;

const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));

const unbracketed = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

/** The address to dial for a host (X1, X2). */
const chosenAddress = async (host: string, options: SenderOptions): Promise<string> => {
  const resolving = { resolve: options.resolve, withinMs: CONNECT_MS };
  if (options.allowHosts.includes(host.toLowerCase().replace(/\.$/, ""))) {
    const [first] = await addressesOf(host, resolving);
    if (first === undefined) throw new AddressRefusal("unresolved");
    return first;
  }
  const address = await publicAddress(host, resolving);
  if ((options.own ?? ownAddresses)().includes(address)) throw new AddressRefusal("private");
  return address;
};

/** Connects to the chosen address. The certificate is checked against the name. */
const connectorOf = (options: SenderOptions): buildConnector.connector => {
  const dial = options.dial ?? buildConnector({ timeout: CONNECT_MS });
  return (wanted, connected) => {
    const host = unbracketed(wanted.hostname);
    chosenAddress(host, options).then(
      (address) => {
        // Addresses are not sent as names (RFC 6066, 3).
        const named = isIP(host) === 0 ? { servername: host } : {};
        dial({ ...wanted, hostname: address, ...named }, connected);
      },
      (error: unknown) => {
        connected(error instanceof Error ? error : new Error(String(error)), null);
      },
    );
  };
};

const ADDRESS_FAULTS = {
  private: "The host has a private address. The operator can allow it in PLATFORM_WEBHOOK_ALLOW_HOSTS.",
  unresolved: "The host's name cannot be resolved.",
  late: "The host's name was not resolved in time.",
} as const;

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Why there was no answer. Texts of the system, which may name addresses inside, are left out. */
const errorOf = (error: unknown, isLate: boolean): string => {
  if (error instanceof AddressRefusal) return ADDRESS_FAULTS[error.fault];
  if (isLate) return "The receiver did not answer in time.";
  const code = codeOf(error);
  switch (code) {
    case "ECONNREFUSED":
      return "The receiver refused the connection.";
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return "The receiver closed the connection without an answer.";
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return "The receiver cannot be reached.";
    default:
      return /^[A-Z][A-Z0-9_]{2,60}$/.test(code)
        ? `The request failed (${code}).`
        : "The answer is not valid HTTP.";
  }
};

/** The body's first bytes. Where it breaks off or takes too long, what came before. */
const firstBytes = async (body: Dispatcher.ResponseData["body"]): Promise<Uint8Array> => {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      size += bytes.length;
      if (size >= ANSWER_KEPT) break; // ends the connection
    }
  } catch {
    // The status has arrived, and it decides.
  }
  return Buffer.concat(chunks).subarray(0, ANSWER_KEPT);
};

const oneOf = (value: string | readonly string[] | undefined): string | null =>
  (typeof value === "string" ? value : value?.[0]) ?? null;

interface Exchange {
  readonly agent: Agent;
  readonly timeoutMs: number;
  readonly interrupted: AbortSignal;
}

const exchange = async (
  { url, headers, body }: SenderRequest,
  { agent, timeoutMs, interrupted }: Exchange,
): Promise<SenderAnswer> => {
  const begun = performance.now();
  const late = AbortSignal.timeout(timeoutMs);
  const tookMs = () => performance.now() - begun;
  try {
    const answer = await send(url, {
      dispatcher: agent,
      method: "POST",
      headers: { ...headers, "accept-encoding": "identity" },
      body,
      signal: AbortSignal.any([late, interrupted]),
    });
    return {
      status: answer.statusCode,
      error: null,
      body: await firstBytes(answer.body),
      retryAfter: oneOf(answer.headers["retry-after"]),
      tookMs: tookMs(),
    };
  } catch (error) {
    const none = { status: null, body: new Uint8Array(), retryAfter: null };
    return { ...none, error: errorOf(error, late.aborted), tookMs: tookMs() };
  }
};

/** Opens a sender in the caller's scope, whose end closes its connections. */
export const makeSender = (
  options: SenderOptions,
): Effect.Effect<(request: SenderRequest) => Effect.Effect<SenderAnswer>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(
        () => new Agent({ connect: connectorOf(options), pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS }),
      ),
      (agent) => Effect.promise(() => agent.destroy()),
    ),
    (agent) => {
      const timeoutMs = options.timeoutMs ?? TRY_TIMEOUT_MS;
      return (request) =>
        Effect.promise((interrupted) => exchange(request, { agent, timeoutMs, interrupted }));
    },
  );
