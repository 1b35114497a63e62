/**
 * HTTP for what belongs to a connector's sign-in: metadata, registration, tokens and their revocation. A request follows no
 * redirect, and has a limit for time and size.
 */
import { type NetClient, readBody } from "../ground/net/client.ts";
import { WireFault, exchangeFault } from "./wire.ts";

/** A request, from its first byte to the last one of its answer. */
const ANSWER_MS = 10_000;
/** Decoded. */
export const ANSWER_MAX_BYTES = 256 * 1024;

export interface Asking {
  readonly client: NetClient;
  /** How long an answer may take. Tests are impatient. */
  readonly answerMs?: number;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | null;
}

/** A whole answer that has arrived. */
export type Ask = (target: string | URL, question?: Question) => Promise<Response>;

/** The reason is part of a sentence that begins with the host. */
export class AskFault extends Error {
  readonly host: string;
  readonly why: string;
  constructor(host: string, why: string) {
    super(`${host} ${why}`);
    this.host = host;
    this.why = why;
  }
}

/** @returns a function that rejects with `AskFault` if there is no whole answer, or if it is a redirect. */
export const makeAsk =
  ({ client, answerMs = ANSWER_MS }: Asking): Ask =>
  async (target, { method = "GET", headers = {}, body = null } = {}) => {
    const url = URL.parse(target.toString());
    if (url === null || !["https:", "http:"].includes(url.protocol))
      throw new AskFault("An address in the metadata", "is not an https URL");
    try {
      const answer = await client.fetch(url, {
        method,
        headers: { ...headers, "accept-encoding": "identity", "user-agent": "platform" },
        body,
        withinMs: answerMs,
      });
      if (answer.status >= 300 && answer.status < 400) {
        await answer.body?.cancel();
        throw new WireFault(`redirects (status ${answer.status}), which is not followed`);
      }
      const limits = { host: url.host, maxBytes: ANSWER_MAX_BYTES, withinMs: answerMs };
      const bytes = await readBody(answer.body, limits);
      const isEmpty = answer.status === 204 || answer.status === 205;
      const plainHeaders = new Headers([...answer.headers]);
      plainHeaders.delete("content-encoding");
      plainHeaders.delete("content-length");
      return new Response(isEmpty ? null : new Uint8Array(bytes), {
        status: answer.status,
        headers: plainHeaders,
      });
    } catch (error) {
      throw new AskFault(url.host, exchangeFault(error));
    }
  };
