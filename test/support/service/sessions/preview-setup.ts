/** A service for previews: one running session with a real daemon, and an app behind one of its ports. */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "vitest";
import { LogRing } from "../../../../daemon/logs/log-ring.ts";
import { Redactor } from "../../../../src/domain/secret/redactor.ts";
import { Report } from "../../../../daemon/report.ts";
import { DaemonServer } from "../../../../daemon/http/server.ts";
import type { Environment } from "../../../../src/settings/config.ts";
import { expectStatus, fields, makeProject, runSession, sandboxEnvironment } from "../requests.ts";
import { startTestService, type TestService } from "../service.ts";
import { WEBSOCKET } from "../raw-http.ts";

/** A request as received by the app behind the port. */
export interface Heard {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

export interface Page {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Visit {
  readonly method?: string;
  readonly cookie?: string;
  readonly headers?: OutgoingHttpHeaders;
}

interface Wish {
  readonly token?: string;
  readonly port?: number;
  readonly sid?: string;
}

export interface PreviewWorld {
  readonly service: TestService;
  readonly pid: string;
  readonly sid: string;
  /** The app's port. */
  readonly port: number;
  /** The host of the app's preview. */
  readonly host: string;
  /** The app's requests, in order. A test empties it. */
  readonly heard: Heard[];
  /** Set-Cookie headers of the app's next answers. */
  readonly sets: string[];
  /** Creates a link, by default to the session's app with the account's first token. @returns its request target. */
  readonly link: (wish?: Wish) => Promise<string>;
  /** Creates a link and opens it. @returns the cookie as a browser sends it. */
  readonly cookie: (wish?: Wish) => Promise<string>;
  /** Requests a target from the service with this Host. */
  readonly visit: (host: string, target: string, visit?: Visit) => Promise<Page>;
  /** Requests a WebSocket. @returns the status, and the socket if it is 101. */
  readonly upgrade: (
    target: string,
    visit?: Visit,
  ) => Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly socket: Socket }>;
  /** Ends the daemon, as in a sandbox's crash. */
  readonly killDaemon: () => void;
  readonly close: () => Promise<void>;
}

/** The app: records its requests, answers with the URL, sets the given cookies, and echoes upgraded connections. */
const startApp = async () => {
  const heard: Heard[] = [];
  const sets: string[] = [];
  const listen = ({ method = "", url = "", headers }: IncomingMessage) =>
    void heard.push({ method, url, headers });
  const server = createServer((asked, response) => {
    listen(asked);
    response.writeHead(200, sets.length > 0 ? { "set-cookie": [...sets] } : {}).end(`app ${asked.url}`);
  });
  server.on("upgrade", (asked, socket) => {
    listen(asked);
    const more = sets.map((set) => `Set-Cookie: ${set}\r\n`).join("");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`,
    );
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { server, heard, sets, port: (server.address() as AddressInfo).port };
};

/** The daemon of a running session. */
const startDaemon = async (service: TestService, sid: string): Promise<DaemonServer> => {
  const environment = await sandboxEnvironment(service, sid);
  const report = new Report({ version: "0", redactor: new Redactor([]), repoUrl: "", branch: "" });
  return new DaemonServer({
    token: environment["PLATFORM_TOKEN"] ?? "",
    sessionId: sid,
    runtimePort: 4096,
    blockedPorts: [8000, 4096, 3128],
    report,
    ring: new LogRing(() => undefined),
    control: (name) => Promise.resolve({ done: { name } }),
    abort: () => Promise.resolve(false),
  });
};

/** Visits a page of the service under any Host. */
export const visitor =
  (service: TestService): PreviewWorld["visit"] =>
  async (host, target, { method = "GET", cookie, headers = {} } = {}) => {
    const call = request({
      host: "127.0.0.1",
      port: service.port,
      method,
      path: target,
      headers: { host, ...(cookie === undefined ? {} : { cookie }), ...headers },
      agent: false,
    });
    call.end();
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      call.on("response", resolve).on("error", reject);
    });
    let text = "";
    for await (const chunk of response) text += String(chunk);
    return { status: response.statusCode ?? 0, headers: response.headers, text };
  };

const upgrader =
  (service: TestService, host: string): PreviewWorld["upgrade"] =>
  (target, { cookie, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const call = request({
        host: "127.0.0.1",
        port: service.port,
        path: target,
        headers: { host, ...WEBSOCKET, ...(cookie === undefined ? {} : { cookie }), ...headers },
        agent: false,
      });
      call.on("upgrade", ({ headers: told }, socket: Socket) =>
        resolve({ status: 101, headers: told, socket }),
      );
      call.on("response", (response) => {
        response.resume();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, socket: response.socket });
      });
      call.on("error", reject);
      call.end();
    });

export const startPreviewWorld = async (environment: Environment = {}): Promise<PreviewWorld> => {
  const socket = path.join(tmpdir(), `preview-${randomUUID()}.sock`);
  const service = await startTestService(environment, { link: () => ({ kind: "unix", path: socket }) });
  const pid = await makeProject(service);
  const sid = await runSession(service, pid);
  const daemon = await startDaemon(service, sid);
  await daemon.listen({ path: socket });
  const app = await startApp();
  const visit = visitor(service);
  const made = async (wish: Wish = {}): Promise<URL> => {
    const { token = service.token, port = app.port, sid: session = sid } = wish;
    const answer = await service.request("POST", `/v1/projects/${pid}/sessions/${session}/preview`, {
      body: { port },
      token,
    });
    return new URL(String(fields(expectStatus(answer, 201))["url"]));
  };
  const { host } = await made();
  return {
    service,
    pid,
    sid,
    port: app.port,
    host,
    heard: app.heard,
    sets: app.sets,
    link: async (wish) => {
      const { pathname, search } = await made(wish);
      return `${pathname}${search}`;
    },
    cookie: async (wish) => {
      const url = await made(wish);
      const opened = await visit(url.host, `${url.pathname}${url.search}`);
      return opened.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    },
    visit,
    upgrade: upgrader(service, host),
    killDaemon: () => daemon.close(),
    close: async () => {
      await service.close();
      daemon.close();
      app.server.closeAllConnections();
      app.server.close();
      rmSync(socket, { force: true });
    },
  };
};

/** Checks a small page of the service's own, which only says what to do. Returns its status. */
export const ownPage = ({ status, headers, text }: Page): number => {
  expect(headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(headers["set-cookie"]).toBeUndefined();
  expect(text).toMatch(/^<!doctype html>\n.*<h1>/s);
  return status;
};
