/**
 * The WebSocket of the `@statelyai/inspect` format, and a page that passes its records to Stately's inspector in a frame, on loopback
 * alone. `createWebSocketReceiver` of that package and the page read the socket. The dashboard's operator page lists the actors
 * without any of this.
 *
 * A page of another origin gets nothing: neither under another host name nor with another `Origin`.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as FiberSet from "effect/FiberSet";
import type * as Scope from "effect/Scope";
import { WebSocketServer, type WebSocket } from "ws";
import type { ActorTransition } from "../../store/ports/transitions.ts";
import type { Feed, Line } from "./feed.ts";
import { isOwnHost, OWN_HOST, ownPort } from "../../ground/net/own-host.ts";

/** A reader has nothing to say. One that sends a larger frame is disconnected. */
const FROM_READER_BYTES = 1024;

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src https://stately.ai; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Live actors</title>
<link rel="stylesheet" href="/inspect.css">
<p>Stately's inspector draws the actors of this service as they work. It is loaded from stately.ai, and gets their states and events.</p>
<iframe id="inspector" title="Stately inspector" src="https://stately.ai/inspect"></iframe>
<script src="/inspect.js"></script>
</html>
`;

const STYLE = `body { display: flex; flex-direction: column; height: 100vh; margin: 0; font: 14px/1.4 system-ui, sans-serif; color-scheme: light dark }
p { margin: .75rem 1rem } iframe { flex: 1; border: 0; border-top: 1px solid #8886 }
`;

/** Records wait until the inspector says that it listens. */
const SCRIPT = `const records = [];
const frame = document.getElementById("inspector");
let isConnected = false;
const forward = (record) => frame.contentWindow.postMessage(record, "https://stately.ai");
addEventListener("message", ({ origin, data }) => {
  if (origin !== "https://stately.ai" || data?.type !== "@statelyai.connected") return;
  isConnected = true;
  records.splice(0).forEach(forward);
});
const connect = () => {
  const socket = new WebSocket("ws://" + location.host + "/");
  socket.onmessage = ({ data }) => {
    const record = JSON.parse(data);
    if (isConnected) forward(record);
    else if (records.push(record) > 2000) records.shift();
  };
  socket.onclose = () => setTimeout(connect, 1000);
};
connect();
`;

const ASSETS: Readonly<Record<string, readonly [type: string, body: string]>> = {
  "/": ["text/html; charset=utf-8", PAGE],
  "/inspect.css": ["text/css; charset=utf-8", STYLE],
  "/inspect.js": ["text/javascript; charset=utf-8", SCRIPT],
};

export interface InspectPage {
  readonly url: string;
  /** For a reader of the format. */
  readonly socketUrl: string;
}

export interface InspectPageOptions {
  /** 0 takes a free one. */
  readonly port: number;
  readonly feed: Feed;
  /** The recent history, for a new reader. Oldest first. */
  readonly past: Effect.Effect<readonly ActorTransition[]>;
}

const makeServer = (): Server => {
  const server = createServer((request, response) => {
    if (!isOwnHost(server, request.headers.host)) {
      response.writeHead(403, HEADERS).end();
      return;
    }
    const asset = request.method === "GET" ? ASSETS[request.url ?? ""] : undefined;
    if (asset === undefined) response.writeHead(404, HEADERS).end();
    else response.writeHead(200, { ...HEADERS, "content-type": asset[0] }).end(asset[1]);
  });
  return server;
};

/** Why a WebSocket is refused. Browsers name the page's origin with each, and other programs name none. */
const refusal = (server: Server, feed: Feed, { url, headers }: IncomingMessage): string | null => {
  const { host, origin } = headers;
  if (!isOwnHost(server, host)) return "403 Forbidden";
  if (origin !== undefined && !(origin.startsWith("http://") && isOwnHost(server, origin.slice(7))))
    return "403 Forbidden";
  if (url !== "/") return "404 Not Found";
  return feed.isFull ? "503 Service Unavailable" : null;
};

const toLine = (socket: WebSocket): Line => ({
  // A line that broke says so by its close.
  send: (frame, onSent) => socket.send(frame, (error) => (error ? undefined : onSent())),
  end: () => socket.terminate(),
});

/** Serves the page and the socket until the scope closes. */
export const openInspectPage = Effect.fnUntraced(function* ({
  port,
  feed,
  past,
}: InspectPageOptions): Effect.fn.Return<InspectPage, never, Scope.Scope> {
  const run = yield* FiberSet.makeRuntime<never>();
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: FROM_READER_BYTES,
    perMessageDeflate: false,
  });
  const open = (socket: WebSocket): void => {
    const line = toLine(socket);
    feed.open(line);
    socket.on("close", () => feed.close(line));
    // What a reader breaks costs its own connection, and a close follows.
    socket.on("error", () => socket.terminate());
    run(
      Effect.flatMap(Effect.all([past, Clock.currentTimeMillis]), ([rows, now]) =>
        Effect.sync(() => feed.begin(line, rows, now)),
      ),
    );
  };
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const httpServer = makeServer();
      httpServer.once("error", (error) => resume(Effect.die(error)));
      httpServer.listen(port, OWN_HOST, () => resume(Effect.succeed(httpServer)));
    }),
    (listener) =>
      Effect.callback<void>((resume) => {
        for (const socket of sockets.clients) socket.terminate();
        listener.close(() => resume(Effect.void));
        listener.closeAllConnections();
      }),
  );
  server.on("upgrade", (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const reason = refusal(server, feed, request);
    if (reason === null) sockets.handleUpgrade(request, duplex, head, open);
    else duplex.end(`HTTP/1.1 ${reason}\r\nConnection: close\r\n\r\n`);
  });
  const own = ownPort(server);
  return { url: `http://${OWN_HOST}:${own}/`, socketUrl: `ws://${OWN_HOST}:${own}/` };
});
