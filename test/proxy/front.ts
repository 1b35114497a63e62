/** The proxy alone: clients on bare sockets in front, an upstream on a bare socket behind. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { answerFailure } from "../../daemon/http/answer.ts";
import { Proxy, type Upstream } from "../../src/proxy/proxy.ts";
import { responseOn } from "../../src/proxy/tunnel.ts";
import { LIMITS, type Limits } from "../../src/proxy/watch.ts";
import { Recording } from "../support/servers/recording.ts";

/** A client's connection: what came, and how it ended. */
export class Client {
  readonly socket: Socket;
  got = "";
  bytes = 0;
  /** Null as long as it is open. */
  ended: "end" | "error" | null = null;
  readonly #waiting: (() => void)[] = [];

  constructor(port: number, { reads = true }: { readonly reads?: boolean } = {}) {
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    if (reads) this.read();
    this.socket.on("end", () => this.#over("end"));
    this.socket.on("error", () => this.#over("error"));
    this.socket.on("close", () => this.#over("end"));
  }

  read(): void {
    this.socket.on("data", (chunk: Buffer) => {
      this.bytes += chunk.length;
      // Endless answers are counted, not kept.
      this.got = (this.got + chunk.toString("latin1")).slice(0, 1024 * 1024);
      this.#wake();
    });
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Waits until what came, or how it ended, is as wanted. */
  async until(isSo: (client: Client) => boolean): Promise<this> {
    while (!isSo(this)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this;
  }

  /** Everything until the connection ended. */
  async all(): Promise<string> {
    await this.until(({ ended }) => ended !== null);
    return this.got;
  }

  #over(how: "end" | "error"): void {
    this.ended ??= how;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

export class Front {
  readonly upstream: Recording;
  readonly #server: Server;
  readonly #proxy: Proxy;
  readonly #clients: Client[] = [];

  private constructor(
    upstream: Recording,
    { limits, port }: { readonly limits: Limits; readonly port: number },
  ) {
    this.upstream = upstream;
    this.#proxy = new Proxy(answerFailure, limits);
    const to = (path: string): Upstream => ({
      at: { host: "127.0.0.1", port },
      path,
      host: "own",
      headers: [],
    });
    this.#server = createServer((request, response) =>
      this.#proxy.pass(request, response, to(request.url ?? "/")),
    );
    this.#server.on("checkContinue", (request, response) =>
      this.#proxy.pass(request, response, to(request.url ?? "/")),
    );
    this.#server.on("upgrade", (request, socket, head) =>
      this.#proxy.upgrade(request, responseOn(request, socket), { socket, head, to: to(request.url ?? "/") }),
    );
  }

  /** @param port of another upstream than the one on a bare socket. */
  static async start({ port, ...limits }: Partial<Limits> & { readonly port?: number } = {}): Promise<Front> {
    const upstream = await Recording.start();
    const front = new Front(upstream, { limits: { ...LIMITS, ...limits }, port: port ?? upstream.port });
    front.#server.listen(0, "127.0.0.1");
    await once(front.#server, "listening");
    return front;
  }

  client(options: { readonly reads?: boolean } = {}): Client {
    const client = new Client((this.#server.address() as AddressInfo).port, options);
    this.#clients.push(client);
    return client;
  }

  /** One request that ends its connection. */
  ask(bytes = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"): Promise<string> {
    const client = this.client();
    client.send(bytes);
    return client.all();
  }

  /** From now on every request is answered with these bytes, and its connection closed where it says so. */
  answers(bytes: string, then: "keep" | "end" | "reset" = "keep"): void {
    this.upstream.onBytes = (socket, soFar) => {
      if (!soFar.endsWith("\r\n\r\n")) return;
      socket.write(bytes, "latin1", () => {
        if (then === "end") socket.end();
        if (then === "reset") socket.resetAndDestroy();
      });
    };
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#clients) socket.destroy();
    this.#proxy.close();
    this.#server.close();
    this.#server.closeAllConnections();
    await this.upstream.stop();
  }
}

export const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
export const statusesIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = ""]) => status);
