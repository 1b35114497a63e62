/** Passes an upstream's answer to the client: head, hints, body, trailers. */
import type {
  ClientRequest,
  IncomingMessage,
  InformationEvent,
  OutgoingMessage,
  ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { responseHeaders, trailers, type HeaderRules } from "./headers.ts";

/**
 * Q5: if Node's writer refuses an answer (a control character in the reason, a status of no class), the answer counts
 * as missing. It ends one request, and never the process that passes it on.
 */
export const writeHead = (
  response: ServerResponse,
  answer: IncomingMessage,
  { rewrite, more = [] }: Pick<HeaderRules, "rewrite"> & { readonly more?: readonly string[] },
): boolean => {
  // Node decodes only the coding "chunked". The bytes of any other coding would be passed on without its name (X14).
  if ((answer.headers["transfer-encoding"] ?? "chunked").toLowerCase() !== "chunked") return false;
  try {
    // This hop's own headers are not for an upstream's answer.
    response.removeHeader("cache-control");
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, [
      ...responseHeaders(answer, rewrite),
      ...more,
    ]);
    return true;
  } catch {
    // The response keeps a refused reason, and the replacement answer would be refused again.
    response.statusMessage = "";
    return false;
  }
};

/** Passes trailers on. False if Node's writer refuses them (Q5). */
export const addTrailers = (from: IncomingMessage, to: OutgoingMessage): boolean => {
  if (from.rawTrailers.length === 0) return true;
  try {
    to.addTrailers(trailers(from));
    return true;
  } catch {
    return false;
  }
};

/** An upstream that sends more informational answers than this is cut off: Node would collect them (threats.md X15). */
const MAX_HINTS = 100;

/**
 * Passes an upstream's informational answers on. They are optional: those that Node's writer refuses are dropped, and
 * HTTP/1.0 clients get none.
 */
export const passHints = (upstream: ClientRequest, response: ServerResponse): void => {
  let count = 0;
  upstream.on("information", ({ statusCode, headers }: InformationEvent) => {
    count += 1;
    if (count > MAX_HINTS) return void upstream.destroy(new Error("too many interim answers"));
    if (response.req.httpVersion !== "1.1") return;
    if (statusCode === 102) return response.writeProcessing();
    if (statusCode !== 103 || headers["link"] === undefined) return;
    try {
      response.writeEarlyHints({ link: headers["link"] });
    } catch {
      // Q5: the final answer is still to come.
    }
  });
};

/** Aborts an incomplete answer, so that it does not look complete (proxy.ts Q3). */
export const breakOff = (response: ServerResponse): void => {
  const socket = response.socket as Socket | null;
  // To an HTTP/1.0 client the end of the connection is the end of the answer. Only a reset shows that it is incomplete.
  if (response.req.httpVersion !== "1.1" && socket?.remoteAddress !== undefined) socket.resetAndDestroy();
  response.destroy();
};

/** A first piece up to this size is written together with the head. */
const SMALL_BYTES = 8 * 1024;

/**
 * Node joins a head and text into one string, but a head and bytes into a list that costs more to write. So this writes
 * text.
 */
const writeSmall = (response: ServerResponse, chunk: Buffer): boolean =>
  response.write(chunk.toString("latin1"), "latin1");

/** Passes on the body of an answer whose head is written. */
export const passBody = (answer: IncomingMessage, response: ServerResponse): void => {
  let isSilent = true;
  answer.on("data", (chunk: Buffer) => {
    const isWritten =
      isSilent && chunk.length <= SMALL_BYTES ? writeSmall(response, chunk) : response.write(chunk);
    isSilent = false;
    if (isWritten) return;
    answer.pause();
    response.once("drain", () => answer.resume());
  });
  answer.on("end", () => {
    isSilent = false;
    if (addTrailers(answer, response)) response.end();
    else breakOff(response);
  });
  // Node reports a truncated answer as an error, never as an end.
  answer.on("error", () => breakOff(response));
  // Headers of a slow stream arrive before its first event. Headers of an answer that is already here go with it in one
  // write.
  process.nextTick(() => {
    if (isSilent && !response.writableEnded) response.flushHeaders();
  });
};

const LINGER_MS = 2000;

/** Closes a connection soon after its answer. Otherwise a client that keeps sending would hold it open for ever. */
export const destroySoon = (socket: { destroy(): unknown }, unless: () => boolean = () => false): void => {
  // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's sockets, below Effect
  setTimeout(() => {
    if (!unless()) socket.destroy();
  }, LINGER_MS).unref();
};
