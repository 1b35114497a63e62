/**
 * The adapter of src/connectors/port.ts. HTTP APIs are in http-apis.ts; this file has MCP servers over streamable HTTP, by the protocol's own client library. Every exchange is a connection of its own:
 * this process remembers no session of a server, so that a restart changes nothing for an agent.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { NetClient } from "../ground/net/client.ts";
import type { Network } from "../ground/net/dial.ts";
import { NetFault } from "../ground/net/fault.ts";
import { isRecord } from "../ground/record.ts";
import type { CatalogueTool, LeftOut } from "../domain/connector/catalogue.ts";
import { callApi, fetchDocument } from "./http-apis.ts";
import type { ListedTools, McpCall, ServerFault, Servers, ServerTarget, ToolResult } from "./port.ts";
import { connectorClient, Exchange, WireFault } from "./wire.ts";

/** A call from its first byte to its result, with the connection's handshake. */
export const CALL_MS = 60_000;
export const RESULT_MAX_BYTES = 1024 * 1024;
const LIST_MAX_BYTES = 4 * 1024 * 1024;
const LIST_MS = 30_000;
/** How many pages a list may have. */
const PAGES = 100;
/** Older revisions begin with a handshake; this one and later ones do not. */
const WITHOUT_HANDSHAKE = "2026-07-28";

type Library = typeof import("@modelcontextprotocol/client");
type Client = InstanceType<Library["Client"]>;

interface LibraryOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
}

interface Exchanging<A> {
  readonly target: ServerTarget;
  readonly maxBytes: number;
  readonly deadlineMs: number;
  readonly work: (client: Client, exchange: Exchange, options: LibraryOptions) => Promise<A>;
}

const faultOf = (why: string, exchange: Exchange | null): ServerFault => ({
  _tag: "ServerFault",
  why,
  isUnknown: exchange?.isSent === true && exchange.isCalling,
  status: exchange?.status ?? null,
});

/** The reason in an error of the client library, as part of a sentence about the server. */
const reasonFor = (error: unknown, exchange: Exchange, library: Library): string => {
  if (error instanceof WireFault || error instanceof NetFault) return error.why;
  if (error instanceof library.UnsupportedProtocolVersionError) return REVISION_FAULT;
  if (error instanceof library.ProtocolError) {
    // The server answered: its tool did not run, or failed.
    exchange.isSent = false;
    return `answered: ${error.message}`;
  }
  const { status } = exchange;
  if (status !== null && status >= 300) {
    // A gateway answers 502 and 504 for a server that may have run the tool.
    if (status !== 502 && status !== 504) exchange.isSent = false;
    if (status < 400) return `redirects (status ${status}), which is not followed to another place`;
    const hint = status === 401 || status === 403 ? ". Its credential may be wrong" : "";
    return `answered with status ${status}${hint}`;
  }
  // The library has no type for the revision that a server chose in its handshake.
  const [, revision] = /protocol version is not supported: (.*)$/s.exec(String(error)) ?? [];
  if (revision !== undefined) return `${REVISION_FAULT}: it speaks ${JSON.stringify(revision.slice(0, 40))}`;
  return "answered with something that is not MCP";
};

const REVISION_FAULT = "speaks no revision of MCP that this service speaks";

/** Loads the library at its first use: a service without connectors does not need its 11 MiB. */
const libraryOf = (): Promise<Library> => import("@modelcontextprotocol/client");

const negotiation = (protocol: string | null) =>
  protocol === null ? "auto" : protocol < WITHOUT_HANDSHAKE ? "legacy" : { pin: protocol };

/** Connects, does the work, and ends the server's session. */
const exchanging = async <A>(
  net: NetClient,
  { target, maxBytes, deadlineMs, work }: Exchanging<A>,
  signal: AbortSignal,
): Promise<A> => {
  const library = await libraryOf();
  const url = new URL(target.url);
  const exchange = new Exchange({ client: net, url, maxBytes });
  const client = new library.Client(
    { name: "platform", version: "1" },
    { versionNegotiation: { mode: negotiation(target.protocol) } },
  );
  const transport = new library.StreamableHTTPClientTransport(url, {
    fetch: exchange.fetch,
    requestInit: { headers: { ...target.headers } },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
    onInsufficientScope: "throw",
  });
  const late = AbortSignal.timeout(deadlineMs);
  late.addEventListener("abort", () =>
    exchange.fail(new NetFault(url.host, { _tag: "Late", ms: deadlineMs })),
  );
  // The library's own deadline comes later.
  const options = { signal: AbortSignal.any([signal, late]), timeout: deadlineMs * 2 };
  try {
    const all = async () => {
      await client.connect(transport, options);
      return work(client, exchange, options);
    };
    const working = all();
    working.catch(() => undefined);
    return await Promise.race([working, exchange.broken]);
  } catch (error) {
    throw faultOf(reasonFor(error, exchange, library), exchange);
  } finally {
    exchange.isCalling = false;
    transport
      .terminateSession()
      .catch(() => undefined)
      .finally(() => void client.close().catch(() => undefined));
  }
};

const isFault = (error: unknown): error is ServerFault =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ServerFault";

/** An exchange as an effect. Its interruption aborts every request. */
const asEffect = <A>(exchange: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ServerFault> =>
  Effect.tryPromise({
    try: exchange,
    catch: (error) => (isFault(error) ? error : faultOf("cannot be reached", null)),
  });

/** Takes any result. The library refuses a whole list for one wrong tool. */
const ANY_RESULT = {
  "~standard": { version: 1, vendor: "platform", validate: (value: unknown) => ({ value }) },
} as const;

/** A tool of a list, or why the entry is none. Whether it can be used is decided by src/domain/connector/catalogue.ts. */
const readTool = (entry: unknown, index: number): CatalogueTool | LeftOut => {
  const { name, description, inputSchema } = isRecord(entry) ? entry : {};
  if (typeof name !== "string" || name === "")
    return { name: `number ${index + 1}`, why: "This entry of the server's list has no name." };
  if (description !== undefined && description !== null && typeof description !== "string")
    return { name: name.slice(0, 128), why: "Its description is not a text." };
  if (!isRecord(inputSchema)) return { name: name.slice(0, 128), why: "It has no input schema." };
  return { name, description: (description ?? "").toWellFormed(), inputSchema };
};

/** All pages of a server's list. */
const entries = async (client: Client, options: LibraryOptions): Promise<readonly unknown[]> => {
  const all: unknown[] = [];
  const cursors = new Set<string>();
  let cursor: string | null = null;
  do {
    const params = cursor === null ? {} : { params: { cursor } };
    // oxlint-disable-next-line no-await-in-loop -- a page names the next one
    const page: unknown = await client.request({ method: "tools/list", ...params }, ANY_RESULT, options);
    const { tools, nextCursor } = isRecord(page) ? page : {};
    if (!Array.isArray(tools)) throw new WireFault("answered with a list of tools that is not a list");
    all.push(...(tools as readonly unknown[]));
    cursor = typeof nextCursor === "string" && nextCursor !== "" ? nextCursor : null;
    if (cursor !== null && cursors.has(cursor))
      throw new WireFault("lists its tools without end: a page follows that was read before");
    if (cursors.size >= PAGES) throw new WireFault(`lists its tools on more than ${PAGES} pages`);
    if (cursor !== null) cursors.add(cursor);
  } while (cursor !== null);
  return all;
};

const list = async (client: Client, options: LibraryOptions): Promise<ListedTools> => {
  const hasTools = client.getServerCapabilities()?.tools !== undefined;
  const read = hasTools ? (await entries(client, options)).map(readTool) : [];
  return {
    tools: read.filter((entry): entry is CatalogueTool => !("why" in entry)),
    leftOut: read.filter((entry) => "why" in entry),
    protocol: client.getNegotiatedProtocolVersion() ?? WITHOUT_HANDSHAKE,
  };
};

/** `isCalling` from the moment at which the call is handed to the library. */
const call = async (
  client: Client,
  exchange: Exchange,
  { name, inputSchema, arguments: given, options }: McpCall & { readonly options: LibraryOptions },
): Promise<ToolResult> => {
  exchange.isCalling = true;
  exchange.status = null;
  const { content, structuredContent, isError } = await client.callTool(
    { name, arguments: { ...given } },
    { ...options, toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } } },
  );
  return {
    content,
    ...(structuredContent !== undefined && { structuredContent }),
    isError: isError === true,
    status: exchange.status,
  };
};

/**
 * @param allowHosts hosts that may have a private address, or plain http.
 */
export const makeServers = (
  allowHosts: readonly string[],
  callMs: number = CALL_MS,
  network?: Network,
): Effect.Effect<Servers, never, Scope.Scope> =>
  Effect.gen(function* () {
    const net = yield* Effect.acquireRelease(
      Effect.sync(() => connectorClient(allowHosts, network)),
      (opened) => Effect.promise(() => opened.close()),
    );
    return {
      list: (target) =>
        asEffect((signal) =>
          exchanging(
            net,
            {
              target,
              maxBytes: LIST_MAX_BYTES,
              deadlineMs: LIST_MS,
              work: (client, _, options) => list(client, options),
            },
            signal,
          ),
        ),
      document: (target) => asEffect((signal) => fetchDocument(net, target, signal)),
      call: (target, wanted) =>
        asEffect((signal) => {
          const bounds = { maxBytes: RESULT_MAX_BYTES, deadlineMs: callMs };
          if (wanted.kind === "http")
            return callApi(net, target, { call: wanted, bounds: { ...bounds, signal } });
          const work: Exchanging<ToolResult>["work"] = (client, exchange, options) =>
            call(client, exchange, { ...wanted, options });
          return exchanging(net, { target, ...bounds, work }, signal);
        }),
    };
  });
