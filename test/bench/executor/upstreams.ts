/** Servers for connectors that cost little: one MCP server and one HTTP API in a process of their own. It says its ports to its parent. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startMcpServer } from "../../support/servers/mcp-server.ts";

export interface Ports {
  readonly mcp: number;
  readonly http: number;
}

/** Tools of each connector. */
export const TOOLS = 100;

const description = "Lists the issues of a team, the newest first, with their labels and their people. ";
const inputSchema = {
  type: "object",
  properties: {
    team: { type: "string", description: "The team's key." },
    state: { type: "string", enum: ["open", "closed", "all"] },
    labels: { type: "array", items: { type: "string" }, description: "Labels that an issue must have." },
    limit: { type: "integer", minimum: 1, maximum: 100 },
  },
};

/** Paths below /hang are never answered. */
const api = createServer((request, response) => {
  if (request.url?.startsWith("/hang") === true) return;
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json" }).end('{"number":7,"title":"Say hello"}');
  });
}).listen(0, "127.0.0.1");

const mcp = await startMcpServer(
  Array.from({ length: TOOLS }, (_, index) => ({
    name: `tool_${index}`,
    description: description.repeat(3),
    inputSchema,
  })),
);
const hangs = (url: string | undefined): boolean => url?.includes("hang") === true;
mcp.answers.set("tool_0", ({ url }) => (hangs(url) ? null : { content: [{ type: "text", text: "done" }] }));
process.send?.({ mcp: mcp.port, http: (api.address() as AddressInfo).port } satisfies Ports);
process.on("disconnect", () => process.exit());
