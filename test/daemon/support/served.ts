/** The daemon's HTTP server in this process, before upstreams of the test's own. */
import { mkdtempSync, rmSync } from "node:fs";
import {
  createServer,
  request,
  type ClientRequest,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import { connect, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConversationFeed } from "../../../daemon/conversation/feed.ts";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { Report } from "../../../daemon/report.ts";
import { DaemonServer } from "../../../daemon/http/server.ts";
import { signUserContext } from "../../../src/domain/sandbox/user-context.ts";

export const SESSION_ID = "0192d3a4-0000-7000-8000-0000000000aa";
export const TOKEN = "platform_sbx_token-of-the-sandbox-under-test";
export const BLOCKED_PORT = 4096;

export interface Answer {
  readonly response: IncomingMessage;
  readonly body: string;
}

export const contextHeader = (token = TOKEN): string =>
  // oxlint-disable-next-line no-restricted-properties -- the server under test reads the machine's clock
  signUserContext({ userId: "user-1", sessionId: SESSION_ID, role: "owner", nowMs: Date.now() }, token);

export class Served {
  readonly report = new Report({
    version: "0.0.0",
    redactor: new Redactor([]),
    repoUrl: "http://platform.internal/v1/git/p.git",
    branch: SESSION_ID,
  });
  readonly ring = new LogRing(() => undefined);
  /** One for each abort: whether no turn may follow it. */
  readonly aborts: boolean[] = [];
  /** How often it was told that messages are taken again. */
  continued = 0;
  readonly #directory = mkdtempSync(join(tmpdir(), "served-"));
  readonly #upstreams: Server[] = [];
  readonly #sockets = new Set<Socket>();
  #server: DaemonServer | null = null;

  /** `runtime` is the agent runtime; it serves from the start unless the test says otherwise. */
  static async start(runtime: RequestListener, feed: ConversationFeed | null = null): Promise<Served> {
    const served = new Served();
    const server = new DaemonServer({
      token: TOKEN,
      sessionId: SESSION_ID,
      runtimePort: await served.upstream(createServer(runtime)),
      blockedPorts: [8000, BLOCKED_PORT, 3128],
      report: served.report,
      ring: served.ring,
      ...(feed !== null && { feed, steering: (name) => Promise.resolve({ done: { name } }) }),
      abort: (isLast) => Promise.resolve(served.aborts.push(isLast) > 0),
      goOn: () => void (served.continued += 1),
      control: (name) => Promise.resolve({ done: { name } }),
    });
    served.#server = server;
    await server.listen({ path: served.socketPath });
    served.report.setRuntime({ state: "ready" });
    served.report.setRepo({ ready: true });
    return served;
  }

  get socketPath(): string {
    return join(this.#directory, "d.sock");
  }

  /** Starts one more upstream and tells its port. */
  async upstream(server: Server, host = "127.0.0.1"): Promise<number> {
    this.#upstreams.push(server);
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, host, () => resolve()));
    return (server.address() as AddressInfo).port;
  }

  /** Opens a request with a valid context; the caller sends its body and ends it. */
  open(
    path: string,
    options: { method?: string; headers?: readonly string[] | Record<string, string> } = {},
  ): ClientRequest {
    const headers = Array.isArray(options.headers)
      ? options.headers
      : { "x-platform-user-context": contextHeader(), ...options.headers };
    return request({
      socketPath: this.socketPath,
      path,
      method: options.method ?? "GET",
      headers,
      agent: false,
    });
  }

  /** One request to its end. */
  ask(
    path: string,
    options: { method?: string; headers?: readonly string[] | Record<string, string>; body?: string } = {},
  ): Promise<Answer> {
    const call = this.open(path, options);
    call.end(options.body);
    return answerOf(call);
  }

  /** Sends bytes as they are, and returns everything that comes back until the connection ends. */
  raw(text: string | Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.socketPath);
      let got = "";
      socket.on("data", (chunk) => (got += chunk.toString("latin1")));
      socket.on("error", reject);
      socket.on("close", () => resolve(got));
      socket.write(text);
    });
  }

  async stop(): Promise<void> {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#upstreams.map((server) => new Promise((resolve) => server.close(resolve))));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export const answerOf = (call: ClientRequest): Promise<Answer> =>
  new Promise((resolve, reject) => {
    call.on("error", reject);
    call.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ response, body: Buffer.concat(chunks).toString("utf8") }));
    });
  });

/** A promise and the function that keeps it: what tests wait on. */
export const signal = <A = void>(): { readonly given: Promise<A>; readonly give: (value: A) => void } => {
  const { promise, resolve } = Promise.withResolvers<A>();
  return { given: promise, give: resolve };
};
