/** A receiver of outbound webhooks: a real HTTP server on loopback that records what it gets and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers a request, or leaves it open. */
export type Behaviour = (response: ServerResponse, received: Received) => void;

/** Answers with a status and a body. */
export const answering =
  (status: number, body = "", headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) => {
    response.writeHead(status, headers).end(body);
  };

export class ReceiverServer {
  readonly received: Received[] = [];
  /** For requests to come. */
  behaviour: Behaviour = answering(204);
  readonly #server = createServer((request, response) => {
    void text(request).then((body) => {
      const received = { path: request.url ?? "", headers: request.headers, body };
      this.received.push(received);
      this.behaviour(response, received);
    });
  });

  static async open(): Promise<ReceiverServer> {
    const receiver = new ReceiverServer();
    receiver.#server.listen(0, "127.0.0.1");
    await once(receiver.#server, "listening");
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The values of `webhook-id` that it got at a path, in order. */
  ids(path: string): readonly string[] {
    return this.received
      .filter((request) => request.path === path)
      .map(({ headers }) => String(headers["webhook-id"]));
  }

  /** Requests at a path, and what their bodies say. */
  at(path: string): readonly { readonly headers: IncomingHttpHeaders; readonly json: Message }[] {
    return this.received
      .filter((request) => request.path === path)
      .map(({ headers, body }) => ({ headers, json: JSON.parse(body) as Message }));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

export interface Message {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}
