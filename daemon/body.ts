/** Reads the JSON bodies of the control surface: bounded in size and time before anything is done with them (api.md 1). */
import type { IncomingMessage, ServerResponse } from "node:http";
import { invalid, type Refused } from "./answer.ts";

export const JSON_LIMIT_BYTES = 1024 * 1024;
/** How long a body may take to arrive. */
const ARRIVAL_MS = 30_000;

/** What was sent, or the refusal to answer with. */
export type ReadBody = { readonly value: unknown } | Refused;

const TOO_LARGE: ReadBody = {
  status: 413,
  body: { error: `The body has more than ${JSON_LIMIT_BYTES} bytes.`, code: "body_too_large" },
};
const TOO_SLOW: ReadBody = {
  status: 408,
  body: { error: "The body did not arrive in time.", code: "body_timeout" },
};
const CUT_SHORT: ReadBody = {
  status: 400,
  body: { error: "The body ended before it was complete.", code: "malformed_request" },
};
const NO_JSON: ReadBody = invalid("", "it is not JSON");

/** Nothing sent counts as `{}`. Never rejects. */
export const readJson = async (request: IncomingMessage, response: ServerResponse): Promise<ReadBody> => {
  if (Number(request.headers["content-length"] ?? 0) > JSON_LIMIT_BYTES) return TOO_LARGE;
  if (request.headers.expect !== undefined) response.writeContinue();
  const bytes = await collect(request);
  return Buffer.isBuffer(bytes) ? parse(bytes) : bytes;
};

const collect = (request: IncomingMessage): Promise<Buffer | ReadBody> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    // oxlint-disable-next-line no-restricted-globals -- below Effect, beside the server it serves
    const timer = setTimeout(() => end(TOO_SLOW), ARRIVAL_MS);
    const end = (result: Buffer | ReadBody): void => {
      clearTimeout(timer);
      request.off("data", take);
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > JSON_LIMIT_BYTES) end(TOO_LARGE);
      else chunks.push(chunk);
    };
    request.on("data", take);
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
