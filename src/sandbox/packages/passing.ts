/** Passes a request on to a registry as it is, and the answer back. Nothing is kept. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { PackageKind } from "../../domain/environment/packages.ts";
import type { NetAnswer, NetClient } from "../../ground/net/client.ts";
import { endToEndHeaders, HOP_BY_HOP } from "../egress-messages.ts";

/** A sandbox's request to a registry. */
export interface PackageRequest {
  readonly kind: PackageKind;
  /** The registry or index, without a slash at the end. */
  readonly source: URL;
  readonly projectId: string;
  /** As the sandbox wrote it, with the query. */
  readonly path: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Whether the sandbox may reach a host. */
  readonly mayAsk: (url: URL) => boolean;
}

const answerHeaders = ({ headers }: NetAnswer): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));

/** Where a request passes to. */
export interface Passing {
  readonly url: URL;
  /** As the registry shall see it. */
  readonly path: string;
  /** Whether the sandbox's credentials are for this origin. */
  readonly hasCredentials: boolean;
}

const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie"]);

/** A header that comes once is text: undici reads no list as a length. */
const onceAsText = (value: OutgoingHttpHeaders[string]) =>
  Array.isArray(value) && value.length === 1 ? value[0] : value;

const requestHeaders = (
  { incoming }: PackageRequest,
  { hasCredentials }: Passing,
): Record<string, string | string[]> =>
  Object.fromEntries(
    Object.entries(endToEndHeaders(incoming))
      .filter(([name]) => name !== "host" && name !== "expect" && (hasCredentials || !CREDENTIALS.has(name)))
      .map(([name, value]) => [name, onceAsText(value)]),
  ) as Record<string, string | string[]>;

/** A signal that tells when the sandbox has left. */
export const leaving = ({ outgoing }: Pick<PackageRequest, "outgoing">): AbortSignal => {
  const left = new AbortController();
  outgoing.on("close", () => left.abort());
  return left.signal;
};

/**
 * @throws NetFault before anything was sent
 */
export const passOn = async (upstream: NetClient, request: PackageRequest, to: Passing): Promise<void> => {
  const { incoming, outgoing } = request;
  const hasBody =
    incoming.headers["transfer-encoding"] !== undefined ||
    Number(incoming.headers["content-length"] ?? 0) > 0;
  const answer = await upstream.request({
    url: to.url,
    path: to.path,
    method: incoming.method ?? "GET",
    headers: requestHeaders(request, to),
    body: hasBody ? incoming : null,
    signal: leaving(request),
  });
  outgoing.writeHead(answer.statusCode, answerHeaders(answer));
  await pipeline(answer.body, outgoing);
};
