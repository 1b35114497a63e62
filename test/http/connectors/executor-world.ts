/** A service with a connector to a real MCP server, and the ways to use it. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startMcpServer, type McpServer } from "../../support/servers/mcp-server.ts";
import {
  expectStatus,
  fields,
  listOf,
  makeProject,
  runSession,
  sandboxEnvironment,
  webhookEntry,
  type Fields,
  type Files,
} from "../../support/service/requests.ts";
import { startTestService, type TestOptions, type TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

export const CREDENTIAL = "upstream-credential-1";
export const TOOLS = [
  { name: "read", description: "Reads a page of the wiki." },
  { name: "write", description: "Writes a page." },
  { name: "delete_all", description: "Deletes every page." },
  { name: "publish", description: "Publishes a page." },
];

export const manifest = (url: string, more = ""): string => `
[[connectors]]
slug = "wiki"
kind = "mcp"
url = "${url}"
auth = "bearer"
direct = ["read", "publish"]
[[connectors.tools]]
match = "delete_*"
policy = "deny"
[[connectors.tools]]
match = "publish"
policy = "ask"
[[connectors.tools]]
match = "*"
policy = "allow"
${more}
${webhookEntry("push")}`;

/** A connector without a credential. */
export const connectorEntry = (slug: string, url: string): string =>
  `[[connectors]]\nslug = "${slug}"\nkind = "mcp"\nurl = "${url}"\n`;

export interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly isError: boolean;
}

export const textOf = ({ content }: Result): string => content.map(({ text }) => text).join("\n");

interface Calling {
  readonly by?: string;
  readonly project?: string;
  /** Ends the request. */
  readonly signal?: AbortSignal;
}

/** What a message of the protocol, or a stream of them, says. */
const messagesIn = (text: string, isStream: boolean): readonly unknown[] =>
  isStream
    ? text.split("\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []))
    : [JSON.parse(text)];

/** Of a message by hand. */
export const HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };

export class ExecutorWorld {
  readonly service: TestService;
  readonly server: McpServer;
  /** A project whose connector is connected, a session of it, and the token of its agent. */
  pid = "";
  sid = "";
  token = "";

  private constructor(service: TestService, server: McpServer) {
    this.service = service;
    this.server = server;
  }

  /** @param settings of a service of its own. Without them it is the worker's. */
  static async start(
    settings?: Readonly<Record<string, string>>,
    options: TestOptions = {},
  ): Promise<ExecutorWorld> {
    const base = { PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1", PLATFORM_TIER_CAPS: '{"free": 1000}' };
    const service = await (settings === undefined
      ? shareService()
      : startTestService({ ...base, ...settings }, options));
    const world = new ExecutorWorld(service, await startMcpServer(TOOLS));
    world.pid = await world.newProject();
    await world.connect(world.pid);
    world.sid = await runSession(service, world.pid);
    world.token = await world.tokenOf(world.sid);
    return world;
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.server.close();
  }

  /** Forgets what another test received and changed. */
  reset(): void {
    this.server.tools = TOOLS;
    this.server.instead = null;
    this.server.answers.clear();
    this.server.calls.length = 0;
    this.server.requests.length = 0;
  }

  /** The methods of requests to the server, without the end of a session there: an earlier test's may come late. */
  get requests(): readonly string[] {
    return this.server.requests.filter((method) => method !== "DELETE");
  }

  newProject(text = manifest(this.server.url), files: Files = {}): Promise<string> {
    return makeProject(this.service, { files: { "platform.toml": text, ...files } });
  }

  async catalogueOf(project: string, slug = "wiki"): Promise<Fields> {
    const target = `/v1/projects/${project}/connectors/${slug}/catalogue`;
    return fields(expectStatus(await this.service.request("GET", target), 200));
  }

  change(project: string, body: Fields, slug = "wiki") {
    return this.service.request("POST", `/v1/projects/${project}/connectors/${slug}/catalogue`, { body });
  }

  /** Stores the credential, fetches the tools and accepts them. */
  async connect(project: string, slug = "wiki"): Promise<void> {
    const target = `/v1/projects/${project}/connectors/${slug}/credential`;
    expectStatus(await this.service.request("PUT", target, { body: { value: CREDENTIAL } }), 200);
    const { pin } = await this.catalogueOf(project, slug);
    expectStatus(await this.change(project, { action: "accept", pin }, slug), 200);
  }

  async tokenOf(session: string): Promise<string> {
    return (await sandboxEnvironment(this.service, session))["PLATFORM_EXECUTOR_TOKEN"] ?? "";
  }

  /** Sends one message by hand. */
  send(
    message: unknown,
    options: { readonly pid?: string; readonly token?: string; readonly headers?: object } = {},
  ) {
    const { pid = this.pid, token = this.token, headers } = options;
    return this.service.request("POST", `/v1/projects/${pid}/executor/mcp`, {
      token,
      headers: { ...HEADERS, ...headers },
      body:
        typeof message === "string"
          ? message
          : JSON.stringify({ jsonrpc: "2.0", id: 1, ...(message as object) }),
    });
  }

  /** Uses the gateway as an agent runtime does, by the protocol's own client. */
  async withClient<A>(
    use: (client: Client) => Promise<A>,
    options: Calling & { readonly mode?: "legacy" | "auto" } = {},
  ): Promise<A> {
    const { mode = "legacy", by = this.token, project = this.pid } = options;
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    const url = new URL(`${this.service.url}/v1/projects/${project}/executor/mcp`);
    const requestInit = { headers: { authorization: `Bearer ${by}` } };
    const opened = Promise.withResolvers<void>();
    const watched: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init);
      if (init?.method === "GET") opened.resolve();
      return answer;
    };
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit, fetch: watched }));
    // It asks for the stream of changes without waiting for it.
    if (mode === "legacy") await opened.promise;
    try {
      return await use(client);
    } finally {
      await client.close();
    }
  }

  /** Calls a tool by one message: the protocol's own client would connect for each call. */
  async call(name: string, given: Record<string, unknown> = {}, options: Calling = {}): Promise<Result> {
    const { by = this.token, project = this.pid, signal } = options;
    const answer = await fetch(`${this.service.url}/v1/projects/${project}/executor/mcp`, {
      method: "POST",
      headers: { ...HEADERS, authorization: `Bearer ${by}` },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name, arguments: given },
      }),
      ...(signal && { signal }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    const isStream = answer.headers.get("content-type") === "text/event-stream";
    const result = messagesIn(text, isStream).at(-1) as { readonly result?: Result };
    if (result.result === undefined) throw new Error(text);
    return { content: result.result.content, isError: result.result.isError === true };
  }

  async calls(project = this.pid, query = "?limit=200"): Promise<readonly Fields[]> {
    const target = `/v1/projects/${project}/executor/calls${query}`;
    return listOf(expectStatus(await this.service.request("GET", target), 200), "calls");
  }

  /** A session of its own, so that tests do not see each other's calls. */
  async freshSession(project = this.pid) {
    const session = await runSession(this.service, project);
    const rows = () => this.calls(project, `?session_id=${session}`);
    return { session, by: await this.tokenOf(session), rows };
  }
}
