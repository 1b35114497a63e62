/**
 * A small MCP server over streamable HTTP (revision 2025-11-25), written without the protocol's library: it keeps
 * sessions, records what it gets, and answers a call as the test says.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ServedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
}

export interface ReceivedCall {
  readonly tool: string;
  readonly arguments: unknown;
  /** The message as it came. */
  readonly text: string;
  readonly headers: IncomingMessage["headers"];
  readonly url: string;
}

/** Answers a call: a result, or the whole response by hand. */
export type Answering = (call: ReceivedCall, response: ServerResponse) => unknown;

export interface McpServer {
  readonly url: string;
  readonly port: number;
  /** What `tools/list` answers. A test may replace it. */
  tools: readonly ServedTool[];
  /** Answers `tools/list` in place of `tools`. Null: `tools` is the list. */
  page: ((cursor: unknown) => unknown) | null;
  /** Receives the client's answers to requests of the server. Null: 202. */
  receive: ((response: ServerResponse) => void) | null;
  /** The revision of the protocol that it chooses. */
  revision: string;
  /** Every request, by method and the message's method. */
  readonly requests: string[];
  readonly calls: ReceivedCall[];
  /** Sessions that began and have not been ended. */
  readonly sessions: Set<string>;
  /** Whether it keeps sessions. */
  keepsSessions: boolean;
  /** By tool. A result that is `null`: the response was written by hand. */
  readonly answers: Map<string, Answering>;
  /** Looks at every request first. True: it has answered. */
  guard: ((request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>) | null;
  /** Answers every request in place of the protocol. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  readonly close: () => Promise<void>;
}

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
};

const answer = (response: ServerResponse, id: Message["id"], result: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
};

/** Text as a tool's result. */
export const textResult = (text: string) => ({ content: [{ type: "text", text }] });

export const startMcpServer = async (tools: readonly ServedTool[]): Promise<McpServer> => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const self: McpServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    tools,
    page: null,
    receive: null,
    revision: "2025-11-25",
    requests: [],
    calls: [],
    sessions: new Set(),
    keepsSessions: true,
    answers: new Map(),
    guard: null,
    instead: null,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const message = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const { id, method, params = {} } = JSON.parse(text) as Message;
    if (method === undefined) {
      self.requests.push("POST answer");
      if (self.receive !== null) return self.receive(response);
      return void response.writeHead(202).end();
    }
    self.requests.push(`POST ${method}`);
    if (method === "initialize") {
      if (self.keepsSessions) {
        const session = randomUUID();
        self.sessions.add(session);
        response.setHeader("mcp-session-id", session);
      }
      answer(response, id, {
        protocolVersion: self.revision,
        capabilities: { tools: {} },
        serverInfo: { name: "test", version: "1" },
      });
      return;
    }
    if (self.keepsSessions && !self.sessions.has(String(request.headers["mcp-session-id"]))) {
      response.writeHead(request.headers["mcp-session-id"] === undefined ? 400 : 404).end();
      return;
    }
    if (id === undefined) return void response.writeHead(202).end();
    if (method === "tools/list") {
      if (self.page !== null) return answer(response, id, self.page(params["cursor"]));
      answer(response, id, {
        tools: self.tools.map((tool) => ({ inputSchema: { type: "object" }, ...tool })),
      });
      return;
    }
    const call = {
      tool: String(params["name"]),
      arguments: params["arguments"],
      text,
      headers: request.headers,
      url: request.url ?? "",
    };
    self.calls.push(call);
    const made = self.answers.get(call.tool) ?? (() => textResult(`${call.tool} ran`));
    const result = made(call, response);
    if (result !== null) answer(response, id, result);
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if ((await self.guard?.(request, response)) === true) return;
    if (self.instead !== null) return self.instead(request, response);
    if (request.method === "POST") return message(request, response, await textOf(request));
    self.requests.push(request.method ?? "");
    if (request.method === "DELETE") self.sessions.delete(String(request.headers["mcp-session-id"]));
    response.writeHead(request.method === "DELETE" ? 200 : 405).end();
  };
  server.on("request", (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  return self;
};
