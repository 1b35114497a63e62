/** The service as a daemon sees it: the clone credential and git over HTTP, with a real `git http-backend` behind. */
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface ServiceOptions {
  /** Directory that holds `<project>.git`. */
  readonly root: string;
  readonly projectId: string;
  /** PLATFORM_TOKEN that the credential is given for. */
  readonly token: string;
}

/** What the test may change while the service runs. */
export interface ServiceState {
  password: string;
  lifeMs: number;
  bootstrap: "pending" | "done";
  /** Answers this many git requests with 500 first. */
  failures: number;
  /** This many credentials are refused by git, as if they had ended meanwhile. */
  stale: number;
  /** Credentials are given out only after this. */
  gate: Promise<void>;
}

export class Service {
  readonly state: ServiceState = {
    password: "pw-canary-1",
    lifeMs: 3_600_000,
    bootstrap: "pending",
    failures: 0,
    stale: 0,
    gate: Promise.resolve(),
  };
  /** Every request line, oldest first. */
  readonly seen: string[] = [];
  /** The subscriptions that were given back. */
  readonly renewed: string[] = [];
  /** How many credentials were given out. */
  credentials = 0;
  readonly #waiting: { readonly count: number; readonly reached: () => void }[] = [];
  readonly #options: ServiceOptions;
  readonly #server = createServer((request, response) => this.#handle(request, response));

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get repoUrl(): string {
    return `${this.base}/v1/git/${this.#options.projectId}.git`;
  }

  /** Completes when so many credentials have been given out. */
  gaveCredentials(count: number): Promise<void> {
    if (this.credentials >= count) return Promise.resolve();
    return new Promise((reached) => this.#waiting.push({ count, reached }));
  }

  /** How often a path was asked for. */
  count(part: string): number {
    return this.seen.filter((line) => line.includes(part)).length;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    this.seen.push(`${request.method} ${request.url}`);
    const url = new URL(request.url ?? "/", this.base);
    if (url.pathname.endsWith("/git/clone-credential")) {
      void this.state.gate.then(() => this.#credential(request, response));
      return;
    }
    if (url.pathname.endsWith("/subscription")) return void this.#renewed(request, response);
    if (this.state.failures > 0) {
      this.state.failures -= 1;
      response.writeHead(500).end("the git server is out of order");
      return;
    }
    const expected = `Basic ${Buffer.from(`x-session:${this.state.password}`).toString("base64")}`;
    if (request.headers.authorization !== expected) {
      request.resume();
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
      return;
    }
    this.#git(request, response, url);
  }

  async #renewed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { content } = (await json(request)) as { readonly content: string };
    if (request.headers.authorization === `Bearer ${this.#options.token}`) this.renewed.push(content);
    response.writeHead(204).end();
  }

  #credential(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.authorization !== `Bearer ${this.#options.token}`) {
      response.writeHead(401).end("{}");
      return;
    }
    const stale = this.state.stale > 0;
    if (stale) this.state.stale -= 1;
    const body = {
      repo_url: this.repoUrl,
      auth: {
        type: "basic",
        username: "x-session",
        password: stale ? "pw-canary-stale" : this.state.password,
      },
      // oxlint-disable-next-line no-restricted-properties -- the daemon under test reads the machine's clock
      expires_at: new Date(Date.now() + this.state.lifeMs).toISOString(),
      bootstrap: this.state.bootstrap,
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    this.credentials += 1;
    for (const waiter of this.#waiting.splice(0)) {
      if (this.credentials >= waiter.count) waiter.reached();
      else this.#waiting.push(waiter);
    }
  }

  #git(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const backend = spawn("git", ["http-backend"], {
      env: {
        PATH: process.env["PATH"] ?? "",
        GIT_PROJECT_ROOT: this.#options.root,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "2",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        GIT_CONFIG_KEY_1: "http.receivepack",
        GIT_CONFIG_VALUE_1: "true",
        PATH_INFO: url.pathname.slice("/v1/git".length),
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method ?? "",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        REMOTE_USER: "session",
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    request.pipe(backend.stdin);
    backend.stdin.on("error", () => undefined);
    let head = Buffer.alloc(0);
    const onHead = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end === -1) return;
      backend.stdout.off("data", onHead);
      let status = 200;
      for (const line of head.subarray(0, end).toString("latin1").split("\r\n")) {
        const colon = line.indexOf(":");
        const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
        if (name.toLowerCase() === "status") status = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.writeHead(status);
      response.write(head.subarray(end + 4));
      backend.stdout.pipe(response);
    };
    backend.stdout.on("data", onHead);
  }
}
