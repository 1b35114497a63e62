/** Reads the bodies of the control surface, with limits on size and time (api.md 1). */
import type { IncomingMessage, ServerResponse } from "node:http";
import { invalid, type ControlRefusal } from "./answer.ts";

export const JSON_LIMIT_BYTES = 1024 * 1024;
/** A claim brings the conversation with former sandboxes. A prepared commit is at most as large (CHECKOUT_PACK_BYTES). */
export const BODY_LIMIT_BYTES = 64 * 1024 * 1024;
/** How long a body may take to arrive. */
const ARRIVAL_MS = 30_000;

/** The body's value, or the refusal to answer with. */
export type ReadBody = { readonly value: unknown } | ControlRefusal;

const tooLarge = (limit: number): ControlRefusal => ({
  status: 413,
  body: { error: `The body has more than ${limit} bytes.`, code: "body_too_large" },
});
const TOO_SLOW: ControlRefusal = {
  status: 408,
  body: { error: "The body did not arrive in time.", code: "body_timeout" },
};
const CUT_SHORT: ControlRefusal = {
  status: 400,
  body: { error: "The request ended before its body was complete.", code: "malformed_request" },
};
const NO_JSON: ReadBody = invalid("", "it is not JSON");

/**
 * How long a body that is too large is still read: if the connection closed at once, the sender would not get the
 * answer.
 */
const READ_AWAY_MS = 2000;

/** An empty body counts as `{}`. Never rejects. */
export const readJson = async (
  request: IncomingMessage,
  response: ServerResponse,
  limit = JSON_LIMIT_BYTES,
): Promise<ReadBody> => {
  const bytes = await readBytes(request, response, limit);
  return Buffer.isBuffer(bytes) ? parse(bytes) : bytes;
};

/** The body as it is. Never rejects. */
export const readBytes = async (
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<Buffer | ControlRefusal> => {
  const { expect, "content-length": said = 0 } = request.headers;
  const isTooLarge = Number(said) > limit;
  // A sender that waits for permission gets the refusal at once.
  if (isTooLarge && expect !== undefined) return tooLarge(limit);
  if (expect !== undefined) response.writeContinue();
  return await collect(request, { limit, isTooLarge });
};

const collect = (
  request: IncomingMessage,
  { limit, isTooLarge }: { readonly limit: number; readonly isTooLarge: boolean },
): Promise<Buffer | ControlRefusal> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let refusal: ControlRefusal | null = null;
    const end = (result: Buffer | ControlRefusal): void => {
      clearTimeout(timer);
      resolve(refusal ?? result);
    };
    // oxlint-disable-next-line no-restricted-globals -- below Effect, beside the server it serves
    let timer = setTimeout(() => end(TOO_SLOW), ARRIVAL_MS);
    const refuse = (): void => {
      refusal = tooLarge(limit);
      chunks.length = 0;
      clearTimeout(timer);
      // oxlint-disable-next-line no-restricted-globals -- below Effect, beside the server it serves
      timer = setTimeout(() => end(tooLarge(limit)), READ_AWAY_MS);
    };
    if (isTooLarge) refuse();
    request.on("data", (chunk: Buffer) => {
      if (refusal !== null) return;
      length += chunk.length;
      if (length > limit) refuse();
      else chunks.push(chunk);
    });
    request.once("end", () => end(Buffer.concat(chunks)));
    request.once("error", () => end(CUT_SHORT));
    request.once("close", () => end(CUT_SHORT));
  });

const parse = (bytes: Buffer): ReadBody => {
  const text = bytes.toString("utf8");
  if (text.trim() === "") return { value: {} };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return NO_JSON;
  }
};
