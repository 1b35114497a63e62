/**
 * The library's transport for one call of a session that is kept. Each call has a client of its own, which counts its requests from 0.
 * In a session no number may come twice, and servers find the stream of an answer by it. So a call's numbers begin at one of its own.
 */
import type { JSONRPCMessage, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { CANCELLED } from "./wire.ts";

const shiftId = (message: JSONRPCMessage, by: number): JSONRPCMessage =>
  "id" in message && message.id !== undefined ? { ...message, id: Number(message.id) + by } : message;

/** A message of the client. Its answer to a request of the server has the server's number. */
const outgoing = (message: JSONRPCMessage, from: number): JSONRPCMessage => {
  if (!("method" in message)) return message;
  if (message.method !== CANCELLED) return shiftId(message, from);
  const params = { ...message.params, requestId: Number(message.params?.["requestId"]) + from };
  return { ...message, params };
};

export class NumberedTransport implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** Completes when the server was told that the call was given up. It is complete for any other call. */
  goodbye: Promise<void> = Promise.resolve();
  readonly #inner: Transport;
  readonly #from: number;

  constructor(inner: Transport, from: number) {
    this.#inner = inner;
    this.#from = from;
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  async start(): Promise<void> {
    Object.assign(this.#inner, {
      onclose: () => this.onclose?.(),
      onerror: (error) => this.onerror?.(error),
      onmessage: (message, extra) =>
        this.onmessage?.("method" in message ? message : shiftId(message, -this.#from), extra),
    } satisfies Partial<Transport>);
    await this.#inner.start();
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const sending = this.#inner.send(outgoing(message, this.#from), options);
    if ("method" in message && message.method === CANCELLED) this.goodbye = sending.catch(() => undefined);
    return sending;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
