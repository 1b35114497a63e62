/**
 * HTTP for what belongs to a connector's sign-in: metadata, registration, tokens and their revocation. A request checks where
 * it connects as a call does (wire.ts), follows no redirect, and has a limit for time and size.
 */
import { fetch as send, type Agent } from "undici";
import { checkHost, reasonOf, WireFault } from "./wire.ts";

/** A request, from its first byte to the last one of its answer. */
const ANSWER_MS = 10_000;
/** Decoded. */
export const ANSWER_MAX_BYTES = 256 * 1024;

export interface Asking {
  readonly agent: Agent;
  /** Hosts that may have a private address, or plain http. In lower case. */
  readonly allowHosts: ReadonlySet<string>;
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

const bytesOf = async (body: AsyncIterable<Uint8Array> | null): Promise<Buffer> => {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    size += part.byteLength;
    if (size > ANSWER_MAX_BYTES) throw new WireFault(`answered with more than ${ANSWER_MAX_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
};

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
  ({ agent, allowHosts, answerMs = ANSWER_MS }: Asking): Ask =>
  async (target, { method = "GET", headers = {}, body = null } = {}) => {
    const url = URL.parse(target.toString());
    if (url === null || !["https:", "http:"].includes(url.protocol))
      throw new AskFault("An address in the metadata", "is not an https URL");
    const signal = AbortSignal.timeout(answerMs);
    try {
      checkHost(url, allowHosts);
      const answer = await send(url, {
        method,
        headers: { ...headers, "accept-encoding": "identity", "user-agent": "platform" },
        body,
        redirect: "manual",
        signal,
        dispatcher: agent,
      });
      if (answer.status >= 300 && answer.status < 400) {
        await answer.body?.cancel();
        throw new WireFault(`redirects (status ${answer.status}), which is not followed`);
      }
      const bytes = await bytesOf(answer.body as AsyncIterable<Uint8Array> | null);
      const isEmpty = answer.status === 204 || answer.status === 205;
      const kept = new Headers([...answer.headers]);
      kept.delete("content-encoding");
      kept.delete("content-length");
      return new Response(isEmpty ? null : new Uint8Array(bytes), { status: answer.status, headers: kept });
    } catch (error) {
      const why = signal.aborted ? `did not answer within ${answerMs / 1000} s` : whyOf(error);
      throw new AskFault(url.host, why);
    }
  };

const whyOf = (error: unknown): string => (error instanceof WireFault ? error.why : reasonOf(error));
