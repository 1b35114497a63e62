/**
 * A small service of the demo's own, for the agent's connector: a board on which its one tool puts an announcement. It speaks the
 * Model Context Protocol, and asks its callers for a token.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { appendFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

/** The slug of the connector, and its tool. */
export const BOARD = "board";
export const ANNOUNCE = "announce";
/** A message has one line of text. */
const BODY_LIMIT_BYTES = 64 * 1024;

export interface Board {
  readonly url: string;
  /** The announcements, oldest first. */
  readonly lines: readonly string[];
  readonly close: () => Promise<void>;
}

const TOOL = {
  name: ANNOUNCE,
  description: "Puts one line on the team's board, where the whole team reads it.",
  inputSchema: {
    type: "object" as const,
    properties: { text: { type: "string", description: "The line." } },
    required: ["text"],
  },
};

const serverOf = (lines: string[]): Server => {
  const server = new Server({ name: BOARD, version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools: [TOOL] }));
  server.setRequestHandler("tools/call", ({ params }) => {
    const text = String(params.arguments?.["text"] ?? "");
    lines.push(text);
    return { content: [{ type: "text" as const, text: `The board says: ${text}` }] };
  });
  return server;
};

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** The request as the protocol's library wants it. Null: its body is too large. */
const webRequest = async (request: IncomingMessage, url: string): Promise<Request | null> => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.byteLength;
    if (size > BODY_LIMIT_BYTES) return null;
    parts.push(part);
  }
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (typeof value === "string") headers.set(name, value);
  const { method = "GET" } = request;
  return new Request(url, { method, headers, ...(method === "POST" && { body: Buffer.concat(parts) }) });
};

/** Starts the board on a free port of this machine. @param token what its callers send */
export const startBoard = async (token: string): Promise<Board> => {
  const lines: string[] = [];
  const handler = createMcpHandler(() => serverOf(lines));
  const answer = async (request: IncomingMessage, response: ServerResponse, url: string): Promise<void> => {
    const given = digest(request.headers.authorization ?? "");
    const web = timingSafeEqual(given, digest(`Bearer ${token}`)) ? await webRequest(request, url) : null;
    if (web === null) {
      response.writeHead(401).end();
      return;
    }
    const answered = await handler.fetch(web);
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.end(Buffer.from(await answered.arrayBuffer()));
  };
  const server = createServer((request, response) => {
    answer(request, response, url).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/mcp`;
  return {
    url,
    lines,
    close: async () => {
      await handler.close();
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Names the board in a repository's manifest: a person approves each announcement. */
export const addBoard = (repository: string, url: string): void => {
  appendFileSync(
    path.join(repository, "platform.toml"),
    `
# A server whose tools the agents use. They never see its token. A person approves each announcement.
[[connectors]]
slug = "${BOARD}"
kind = "mcp"
url = "${url}"
auth = "bearer"
sessions = ["user", "trigger"]
direct = ["${ANNOUNCE}"]

[[connectors.tools]]
match = "${ANNOUNCE}"
policy = "ask"
`,
  );
};
