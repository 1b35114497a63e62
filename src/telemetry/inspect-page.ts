/**
 * The page that shows live actors, served on loopback alone. It shows its own table, which needs no network. If the
 * browser can reach Stately's inspector, the page also passes the same records to it in a frame.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";

/** How many actors' last records a new page gets at once. The actor that was unchanged longest makes room. */
const REMEMBERED_ACTORS = 1_000;
/** A page that falls this many bytes behind is disconnected. It reconnects by itself. */
const BEHIND_BYTES = 1024 * 1024;

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
<h1>Live actors</h1>
<table><thead><tr><th>actor<th>state<th>last event<th>commands</tr></thead><tbody id="actors"></tbody></table>
<details><summary>State diagrams (Stately's inspector, needs the network)</summary>
<iframe id="inspector" title="Stately inspector" data-src="https://stately.ai/inspect"></iframe></details>
<script src="/inspect.js"></script>
</html>
`;

const STYLE = `body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
tr.refused td { color: #a33 } details { margin-top: 2rem } iframe { width: 100%; height: 70vh; border: 1px solid #ddd }
`;

const SCRIPT = `const rows = new Map();
const records = [];
const frame = document.getElementById("inspector");
let isConnected = false;
const forward = (record) => frame.contentWindow.postMessage(record, "https://stately.ai");
document.querySelector("details").addEventListener("toggle", () => { frame.src ||= frame.dataset.src; });
addEventListener("message", ({ origin, data }) => {
  if (origin !== "https://stately.ai" || data?.type !== "@statelyai.connected") return;
  isConnected = true;
  records.splice(0).forEach(forward);
});
const rowOf = (id) => {
  if (!rows.has(id)) {
    const row = document.getElementById("actors").insertRow();
    row.append(...Array.from({ length: 4 }, () => document.createElement("td")));
    row.cells[0].textContent = id;
    rows.set(id, row);
  }
  return rows.get(id);
};
const source = new EventSource("/records");
// The service says again what there is: it may be another life of it.
source.onopen = () => {
  for (const row of rows.values()) row.remove();
  rows.clear();
};
source.onmessage = ({ data }) => {
  const record = JSON.parse(data);
  if (isConnected) forward(record);
  else if (records.push(record) > 2000) records.shift();
  if (record.type === "@xstate.event") return;
  if (record.snapshot.status === "stopped") {
    rows.get(record.sessionId)?.remove();
    rows.delete(record.sessionId);
    return;
  }
  const { cells, classList } = rowOf(record.sessionId);
  cells[1].textContent = record.snapshot.value;
  if (record.type !== "@xstate.snapshot") return;
  cells[2].textContent = record.event.type + (record.event.accepted ? "" : " (refused)");
  cells[3].textContent = record.event.commands.map(({ type }) => type).join(", ");
  classList.toggle("refused", !record.event.accepted);
};
`;

const ASSETS: Readonly<Record<string, readonly [type: string, body: string]>> = {
  "/": ["text/html; charset=utf-8", PAGE],
  "/inspect.css": ["text/css; charset=utf-8", STYLE],
  "/inspect.js": ["text/javascript; charset=utf-8", SCRIPT],
};

export interface InspectPage {
  readonly url: string;
  /** Shows a record to every open page. */
  readonly send: (record: StatelyInspectionEvent) => void;
}

/** An actor that left memory is not live. An ended actor leaves memory when it is idle. */
const hasLeft = (record: StatelyInspectionEvent): boolean =>
  "snapshot" in record && (record.snapshot as { readonly status?: string }).status === "stopped";

/** The records for a new page: each actor's announcement, then its newest snapshot. */
class Recent {
  readonly #actors = new Map<string, Map<string, string>>();

  keep(record: StatelyInspectionEvent, line: string): void {
    if (record.type === "@xstate.event") return;
    if (hasLeft(record)) {
      this.#actors.delete(record.sessionId);
      return;
    }
    const lines = this.#actors.get(record.sessionId) ?? new Map<string, string>();
    this.#actors.delete(record.sessionId);
    this.#actors.set(record.sessionId, lines.set(record.type, line));
    const [oldest] = this.#actors.keys();
    if (this.#actors.size > REMEMBERED_ACTORS && oldest !== undefined) this.#actors.delete(oldest);
  }

  get lines(): readonly string[] {
    return [...this.#actors.values()].flatMap((lines) => Array.from(lines.values()));
  }
}

/** Serves the page until the scope closes. */
export const openInspectPage = (port: number): Effect.Effect<InspectPage, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof serve>>((resume) => {
        const served = serve(port);
        served.server.once("error", (error) => resume(Effect.die(error)));
        served.server.listen(port, "127.0.0.1", () => resume(Effect.succeed(served)));
      }),
      ({ server }) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void));
          server.closeAllConnections();
        }),
    ),
    ({ server, send }) => ({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, send }),
  );

const serve = (port: number) => {
  const readers = new Set<ServerResponse>();
  const recent = new Recent();
  const server = createServer((request, response) => {
    const own = port === 0 ? (server.address() as AddressInfo).port : port;
    // A request under another host name comes from a foreign page. Only this machine's own browser gets answers.
    if (![`127.0.0.1:${own}`, `localhost:${own}`].includes(request.headers.host ?? "")) {
      response.writeHead(403, HEADERS).end();
      return;
    }
    if (request.method === "GET" && request.url === "/records") {
      response.writeHead(200, { ...HEADERS, "content-type": "text/event-stream" });
      response.write(recent.lines.join(""));
      readers.add(response);
      response.once("close", () => readers.delete(response));
      return;
    }
    const asset = request.method === "GET" ? ASSETS[request.url ?? ""] : undefined;
    if (asset === undefined) response.writeHead(404, HEADERS).end();
    else response.writeHead(200, { ...HEADERS, "content-type": asset[0] }).end(asset[1]);
  });
  const send = (record: StatelyInspectionEvent): void => {
    const line = `data: ${JSON.stringify(record)}\n\n`;
    recent.keep(record, line);
    for (const reader of readers) {
      if (reader.writableLength > BEHIND_BYTES) reader.destroy();
      else reader.write(line);
    }
  };
  return { server, send };
};
