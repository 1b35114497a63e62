/**
 * A git server as others run one: git's own `http-backend` behind a small HTTP server that requires a name and a
 * password. A test chooses its faults, request by request.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a request instead of an answer. */
export type Fault =
  /** Nothing, for ever. */
  | { readonly kind: "hang" }
  | { readonly kind: "status"; readonly status: number; readonly location?: string; readonly body?: string }
  /** A page for people, as proxies and code hosts show it to those they do not know. */
  | { readonly kind: "page"; readonly text: string }
  /** Refs without end. */
  | { readonly kind: "endless" }
  /** The connection ends when so many bytes of the request have come. */
  | { readonly kind: "die"; readonly afterBytes: number }
  /** It is done, and the connection ends before a word of it is said. */
  | { readonly kind: "mute" };

export interface UpstreamServer {
  readonly origin: string;
  readonly username: string;
  /** The one that is let in from now on. */
  password: string;
  /** It requires no password. */
  isPublic: boolean;
  /** Targets of the requests that were let in, in their order. */
  readonly heard: string[];
  /** How many requests came, let in or not. */
  knocks: number;
  /** Asked for every request that was let in. */
  fault: (target: string) => Fault | null;
  readonly close: () => Promise<void>;
}

const isLetIn = (request: IncomingMessage, known: string): boolean =>
  request.headers.authorization === `Basic ${Buffer.from(known).toString("base64")}`;

/** Runs the CGI program and gives its answer; `mute` keeps the answer. */
export const serve = (
  root: string,
  request: IncomingMessage,
  response: ServerResponse,
  mute: boolean,
): void => {
  const { pathname, search } = new URL(request.url ?? "", "http://upstream");
  const header = (name: string): string => String(request.headers[name] ?? "");
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "http.receivepack",
      GIT_CONFIG_VALUE_0: "true",
      GIT_CONFIG_KEY_1: "safe.directory",
      GIT_CONFIG_VALUE_1: "*",
      GIT_PROTOCOL: header("git-protocol"),
      HTTP_CONTENT_ENCODING: header("content-encoding"),
      CONTENT_TYPE: header("content-type"),
      CONTENT_LENGTH: header("content-length"),
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      REMOTE_USER: "somebody",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => undefined);
  let head = Buffer.alloc(0);
  let isBody = false;
  child.stdout.on("data", (chunk: Buffer) => {
    if (mute) return;
    if (isBody) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1) return;
    const fields = head
      .toString("latin1", 0, end)
      .split("\r\n")
      .map((line) => line.split(": ", 2) as [string, string]);
    const status = fields.find(([name]) => name === "Status")?.[1] ?? "200";
    response.writeHead(
      Number.parseInt(status, 10),
      Object.fromEntries(fields.filter(([name]) => name !== "Status")),
    );
    isBody = true;
    response.write(head.subarray(end + 4));
  });
  child.once("close", () => (mute ? request.socket.destroy() : response.end()));
};

const endless = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
  response.write("001e# service=git-upload-pack\n0000");
  const refs = Array.from({ length: 1000 }, (_, n) => {
    const line = `${"1".repeat(40)} refs/heads/${String(n).padStart(8, "0")}\n`;
    return `${(line.length + 4).toString(16).padStart(4, "0")}${line}`;
  }).join("");
  const more = (): void => {
    while (!response.destroyed && response.write(refs));
  };
  response.on("drain", more);
  more();
};

const dieAfter = (request: IncomingMessage, bytes: number): void => {
  let size = 0;
  if (bytes === 0) request.socket.destroy();
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size >= bytes) request.socket.destroy();
  });
  request.on("end", () => request.socket.destroy());
};

const misbehave = (fault: Fault, request: IncomingMessage, response: ServerResponse): void => {
  switch (fault.kind) {
    case "status":
      response.writeHead(fault.status, fault.location === undefined ? {} : { location: fault.location });
      return void response.end(fault.body);
    case "page":
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
      return void response.end(fault.text);
    case "endless":
      return endless(response);
    case "die":
      return dieAfter(request, fault.afterBytes);
    default:
      // Hangs: the request is read, and that is all.
      request.resume();
  }
};

/** Serves the bare repositories below `root` on a free port of the loopback. */
export const startUpstream = async (root: string): Promise<UpstreamServer> => {
  const username = "ci";
  const server = createServer((request, response) => {
    upstream.knocks += 1;
    if (!upstream.isPublic && !isLetIn(request, `${username}:${upstream.password}`)) {
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="upstream"' }).end();
    }
    const target = request.url ?? "";
    upstream.heard.push(target);
    const fault = upstream.fault(target);
    if (fault === null || fault.kind === "mute") serve(root, request, response, fault !== null);
    else misbehave(fault, request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a TCP server's address is an object
  const { port } = server.address() as AddressInfo;
  const upstream: UpstreamServer = {
    origin: `http://127.0.0.1:${port}`,
    username,
    password: "canary-password-7f3a",
    isPublic: false,
    heard: [],
    knocks: 0,
    fault: () => null,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return upstream;
};
