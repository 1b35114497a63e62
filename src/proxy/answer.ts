/** An upstream's answer on its way to the client: head, hints, body, trailers. */
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
 * Q5: an answer that Node's writer does not take (a control character in the reason, a status of no class) is as good
 * as none: it must end one request, and never the process that passes it on.
 */
export const writeHead = (
  response: ServerResponse,
  answer: IncomingMessage,
  { rewrite, more = [] }: Pick<HeaderRules, "rewrite"> & { readonly more?: readonly string[] },
): boolean => {
  // Of codings Node undoes "chunked" alone: another one's bytes would be passed on as what they are not (X14).
  if ((answer.headers["transfer-encoding"] ?? "chunked").toLowerCase() !== "chunked") return false;
  try {
    // What this hop says of its own answers is not said of an upstream's.
    response.removeHeader("cache-control");
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, [
      ...responseHeaders(answer, rewrite),
      ...more,
    ]);
    return true;
  } catch {
    // What was refused is kept on the response, and would be refused again with whatever is answered instead.
    response.statusMessage = "";
    return false;
  }
};

/** Passes trailers on; false where Node's writer does not take them (Q5). */
export const addTrailers = (from: IncomingMessage, to: OutgoingMessage): boolean => {
  if (from.rawTrailers.length === 0) return true;
  try {
    to.addTrailers(trailers(from));
    return true;
  } catch {
    return false;
  }
};

/** An upstream that says more than this before its answer is not passed on: it would be collected (threats.md X15). */
const MAX_HINTS = 100;

/**
 * Passes on what an upstream says before its answer. They help and bind nobody: those that Node's writer does not take
 * are dropped, and clients of HTTP/1.0 get none.
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
      // Q5: the answer itself is still to come.
    }
  });
};

/** Ends an answer that cannot become whole, so that it does not look whole (proxy.ts Q3). */
export const breakOff = (response: ServerResponse): void => {
  const socket = response.socket as Socket | null;
  // An HTTP/1.0 client takes the end of the connection for the end of the answer: only a reset tells it.
  if (response.req.httpVersion !== "1.1" && socket?.remoteAddress !== undefined) socket.resetAndDestroy();
  response.destroy();
};

/** A first piece up to this is written together with the head. */
const SMALL_BYTES = 8 * 1024;

/** Node joins a head and text to one string, and a head and bytes to a list that costs more to write: as text then. */
const writeSmall = (response: ServerResponse, chunk: Buffer): boolean =>
  response.write(chunk.toString("latin1"), "latin1");

/** Passes the body of an answer on whose head is written. */
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
  // Node reports an answer cut short as an error, never as an end.
  answer.on("error", () => breakOff(response));
  // Headers of a slow stream arrive before its first event; those of an answer that is here go with it in one write.
  process.nextTick(() => {
    if (isSilent && !response.writableEnded) response.flushHeaders();
  });
};

const LINGER_MS = 2000;

/** Ends a connection soon: an answer is on it, and whoever goes on sending would be heard for ever. */
export const destroySoon = (socket: { destroy(): unknown }, unless: () => boolean = () => false): void => {
  // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's sockets, below Effect
  setTimeout(() => {
    if (!unless()) socket.destroy();
  }, LINGER_MS).unref();
};
