/** A collector of spans: it takes OTLP as JSON over HTTP, and remembers what it got. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue: string } }[];
}

interface Data {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

export class Collector {
  readonly #server: Server;
  readonly spans: ReceivedSpan[] = [];
  /** Each body as it came. */
  readonly bodies: string[] = [];
  headers: IncomingHttpHeaders = {};
  requests = 0;
  /** `silent` takes requests and does not answer. */
  behaviour: "takes" | "refuses" | "silent" = "takes";

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request, response) => {
      this.requests += 1;
      let body = "";
      request.setEncoding("utf8");
      request.on("data", (chunk: string) => (body += chunk));
      request.on("end", () => {
        if (this.behaviour === "silent") return;
        this.headers = request.headers;
        if (this.behaviour === "refuses" || request.url !== "/v1/traces")
          return response.writeHead(503).end();
        this.bodies.push(body);
        const { resourceSpans } = JSON.parse(body) as Data;
        this.spans.push(
          ...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
        );
        return response.writeHead(200, { "content-type": "application/json" }).end("{}");
      });
    });
  }

  static async open(): Promise<Collector> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Collector(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
