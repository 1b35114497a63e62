/**
 * The adapter of src/connectors/port.ts. HTTP APIs are in http-apis.ts; this file lists and calls the tools of MCP servers. Every exchange
 * is a connection of its own (exchanges.ts). Of a server's session, kept-sessions.ts remembers the name.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { type NetClient, openClient } from "../ground/net/client.ts";
import type { Network } from "../ground/net/dial.ts";
import { NetFault } from "../ground/net/fault.ts";
import { isRecord } from "../ground/record.ts";
import type { CatalogueTool, LeftOut } from "../domain/connector/catalogue.ts";
import {
  exchanging,
  serverFault,
  sessionsAt,
  within,
  WITHOUT_HANDSHAKE,
  type Client,
  type ServerConnection,
  type Deadline,
  type LibraryOptions,
} from "./exchanges.ts";
import { callApi, fetchDocument } from "./http-apis.ts";
import { KeptSessions, type PooledSession, type NamedSession } from "./kept-sessions.ts";
import type {
  ListedTools,
  McpCall,
  ServerFault,
  Servers,
  ServerTarget,
  SessionOwner,
  ToolResult,
} from "./port.ts";
import { clientOptions, WireFault } from "./wire.ts";

/** A call from its first byte to its result, with the connection's handshake. */
export const CALL_MS = 60_000;
export const RESULT_MAX_BYTES = 1024 * 1024;
const LIST_MAX_BYTES = 4 * 1024 * 1024;
const LIST_MS = 30_000;
/** How many pages a list may have. */
const PAGES = 100;

const isFault = (error: unknown): error is ServerFault =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ServerFault";

/** An exchange as an effect. Its interruption aborts every request. */
const asEffect = <A>(exchange: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ServerFault> =>
  Effect.tryPromise({
    try: exchange,
    catch: (error) => (isFault(error) ? error : serverFault("cannot be reached", null)),
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

const list = async ({ client, options }: ServerConnection): Promise<ListedTools> => {
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
  { client, exchange, options }: ServerConnection,
  { name, inputSchema, arguments: given }: McpCall,
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

/** The promise's outcome, unless a signal comes first. */
const unlessAborted = <A>(promise: Promise<A>, signal: AbortSignal): Promise<A> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });

/** Whether the server says that it does not have the session. By the protocol it says 404, and has done nothing. */
const isGone = ({ status, isUnknown }: ServerFault): boolean => status === 404 && !isUnknown;

/** Whether it may say so in another way. Then the next call begins anew, and this one is not repeated. */
const seemsGone = ({ status, why }: ServerFault): boolean =>
  status !== null && status >= 400 && /session/i.test(why);

interface Calling {
  readonly target: ServerTarget;
  readonly wanted: McpCall;
  readonly owner: SessionOwner;
  readonly deadline: Deadline;
  readonly signal: AbortSignal;
}

/** Calls in sessions that are kept (U5 of src/connectors/port.ts). */
class KeptCalls {
  readonly sessions: KeptSessions;
  readonly #net: NetClient;
  readonly #now: () => number;

  /** @param now in ms since the epoch */
  constructor(net: NetClient, sessions: KeptSessions, now: () => number) {
    this.#net = net;
    this.sessions = sessions;
    this.#now = now;
  }

  /** @throws ServerFault */
  async call(calling: Calling): Promise<ToolResult> {
    const first = await this.#attempt(calling);
    if (!("gone" in first)) return first;
    const second = await this.#attempt(calling);
    if ("gone" in second) throw second.gone;
    return second;
  }

  /** @returns `gone` if the session was, and with it the call that was not made. */
  async #attempt(calling: Calling): Promise<ToolResult | { readonly gone: ServerFault }> {
    const { target, wanted, owner, deadline, signal } = calling;
    const { sessions } = this;
    const openSession = sessions.take(target, owner, this.#now());
    let name: NamedSession | null = null;
    try {
      name = await this.#named(openSession, calling);
      const session = name === null ? "own" : { ...name, from: sessions.numbersFor(openSession) };
      const work = (connection: ServerConnection) => call(connection, wanted);
      return await exchanging(
        this.#net,
        { target, maxBytes: RESULT_MAX_BYTES, deadline, session, work },
        signal,
      );
    } catch (error) {
      if (name === null || !isFault(error)) throw error;
      if (isGone(error) || seemsGone(error)) sessions.drop(openSession, !isGone(error));
      if (isGone(error)) return { gone: error };
      throw error;
    } finally {
      sessions.release(openSession, this.#now());
    }
  }

  /** The session's name, after its handshake. */
  async #named(
    { named, target }: PooledSession,
    { deadline: { ms, late }, signal }: Calling,
  ): Promise<NamedSession | null> {
    try {
      return await unlessAborted(named, AbortSignal.any([signal, late]));
    } catch (error) {
      if (isFault(error)) throw error;
      throw serverFault(new NetFault(new URL(target.url).host, { _tag: "Late", ms }).why, null);
    }
  }
}

/** The calls of sessions that are kept, until the scope closes. Then the servers hear that the sessions are over. */
const makeKeptCalls = (net: NetClient, callMs: number) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const sessions = yield* Effect.acquireRelease(
      Effect.sync(() => new KeptSessions(sessionsAt(net, callMs))),
      (all) => all.end(all.list().map(({ owner }) => owner)),
    );
    return new KeptCalls(net, sessions, () => clock.currentTimeMillisUnsafe());
  });

/**
 * @param allowHosts hosts that may have a private address, or plain http.
 */
export const makeServers = (
  allowHosts: readonly string[],
  callMs: number = CALL_MS,
  network?: Network,
): Effect.Effect<Servers, never, Scope.Scope> =>
  Effect.gen(function* () {
    const net = yield* openClient(clientOptions(allowHosts, network));
    const keptCalls = yield* makeKeptCalls(net, callMs);
    return {
      sessions: keptCalls.sessions,
      list: (target) =>
        asEffect((signal) => {
          const exchange = { target, maxBytes: LIST_MAX_BYTES, deadline: within(LIST_MS), work: list };
          return exchanging(net, { ...exchange, session: "own" }, signal);
        }),
      document: (target) => asEffect((signal) => fetchDocument(net, target, signal)),
      call: (target, toolCall) =>
        asEffect((signal) => {
          const maxBytes = RESULT_MAX_BYTES;
          if (toolCall.kind === "http")
            return callApi(net, target, { call: toolCall, bounds: { maxBytes, deadlineMs: callMs, signal } });
          const { owner } = toolCall;
          const deadline = within(callMs);
          if (owner !== null && mayKeepSessions(target))
            return keptCalls.call({ target, wanted: toolCall, owner, deadline, signal });
          const work = (connection: ServerConnection) => call(connection, toolCall);
          return exchanging(net, { target, maxBytes, deadline, session: "own", work }, signal);
        }),
    };
  });

/** The revisions without a handshake have no sessions. */
const mayKeepSessions = ({ protocol }: ServerTarget): boolean =>
  protocol === null || protocol < WITHOUT_HANDSHAKE;
