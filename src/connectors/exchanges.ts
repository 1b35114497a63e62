/**
 * One exchange with an MCP server over streamable HTTP, by the protocol's own client library: in a session of its own, in one that it
 * begins and leaves open, or in one that is open already.
 */
import type { NetClient } from "../ground/net/client.ts";
import { NetFault } from "../ground/net/fault.ts";
import { isRecord } from "../ground/record.ts";
import type { AtServer, NamedSession } from "./kept-sessions.ts";
import { NumberedTransport } from "./numbered.ts";
import type { ServerFault, ServerTarget } from "./port.ts";
import { Exchange, WireFault } from "./wire.ts";

/** Older revisions begin with a handshake; this one and later ones do not. */
export const WITHOUT_HANDSHAKE = "2026-07-28";
/** Of the answers that begin and end a session. */
const SESSION_MAX_BYTES = 1024 * 1024;

type Library = typeof import("@modelcontextprotocol/client");
export type Client = InstanceType<Library["Client"]>;

export interface LibraryOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
}

/** How long an exchange may take, with everything that leads to it. */
export interface Deadline {
  readonly ms: number;
  readonly late: AbortSignal;
}

export const within = (ms: number): Deadline => ({ ms, late: AbortSignal.timeout(ms) });

/** An open session, and the first number for requests in it. */
interface Joined extends NamedSession {
  readonly from: number;
}

export interface ServerConnection {
  readonly client: Client;
  readonly exchange: Exchange;
  readonly options: LibraryOptions;
  /** The session that the server gave, or that was joined. */
  readonly sessionId: string | undefined;
}

interface Exchanging<A> {
  readonly target: ServerTarget;
  readonly maxBytes: number;
  readonly deadline: Deadline;
  /** The server's session: "own" is begun and ended here, "begun" stays. */
  readonly session: "own" | "begun" | Joined;
  readonly work: (connection: ServerConnection) => Promise<A>;
}

export const serverFault = (why: string, exchange: Exchange | null): ServerFault => ({
  _tag: "ServerFault",
  why,
  isUnknown: exchange?.isSent === true && exchange.isCalling,
  status: exchange?.status ?? null,
});

/** What the server itself says of its refusal, such as that it allows one session only: an error of the protocol, or a line of text. */
const wordsIn = (error: unknown, library: Library): string => {
  const text = error instanceof library.SdkHttpError ? error.data["text"] : null;
  if (typeof text !== "string") return "";
  let words: unknown = text;
  try {
    const body: unknown = JSON.parse(text);
    const { error: refusal, message } = isRecord(body) ? body : {};
    words = isRecord(refusal) ? refusal["message"] : (refusal ?? message);
  } catch {
    // It is not JSON. A page is of no use to an agent.
    if (text.trimStart().startsWith("<")) return "";
  }
  // The caller ends the sentence itself.
  const sentence = typeof words === "string" ? words.trim().replace(/\.$/, "") : "";
  return sentence === "" ? "" : `: ${sentence}`;
};

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
    return `answered with status ${status}${wordsIn(error, library)}${hint}`;
  }
  // The library has no type for the revision that a server chose in its handshake.
  const [, revision] = /protocol version is not supported: (.*)$/s.exec(String(error)) ?? [];
  if (revision !== undefined) return `${REVISION_FAULT}: it speaks ${JSON.stringify(revision.slice(0, 40))}`;
  return "answered with something that is not MCP";
};

const REVISION_FAULT = "speaks no revision of MCP that this service speaks";

/** Loads the library at its first use: a service without connectors does not need its 11 MiB. */
const loadLibrary = (): Promise<Library> => import("@modelcontextprotocol/client");

const negotiation = (protocol: string | null) =>
  protocol === null ? "auto" : protocol < WITHOUT_HANDSHAKE ? "legacy" : { pin: protocol };

interface Opening {
  readonly library: Library;
  readonly exchange: Exchange;
}

/** A client and its transport, not connected yet. */
const clientFor = (
  { library, exchange }: Opening,
  { target, session }: Pick<Exchanging<unknown>, "target" | "session">,
) => {
  const joinedSession = typeof session === "string" ? null : session;
  // A session has its revision: nothing is left to agree on.
  const mode = joinedSession === null ? negotiation(target.protocol) : "legacy";
  const client = new library.Client({ name: "platform", version: "1" }, { versionNegotiation: { mode } });
  const http = new library.StreamableHTTPClientTransport(new URL(target.url), {
    fetch: exchange.fetch,
    requestInit: { headers: { ...target.headers } },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
    onInsufficientScope: "throw",
    ...(joinedSession !== null && { sessionId: joinedSession.id, protocolVersion: joinedSession.protocol }),
  });
  const numberedTransport = joinedSession === null ? null : new NumberedTransport(http, joinedSession.from);
  return {
    client,
    http,
    transport: numberedTransport ?? http,
    goodbye: () => numberedTransport?.goodbye ?? Promise.resolve(),
  };
};

/** Connects and does the work, in its own session or in another one. @throws ServerFault */
export const exchanging = async <A>(
  net: NetClient,
  { target, maxBytes, deadline, session, work }: Exchanging<A>,
  signal?: AbortSignal,
): Promise<A> => {
  const library = await loadLibrary();
  const url = new URL(target.url);
  const exchange = new Exchange({ client: net, url, maxBytes });
  const { client, http, transport, goodbye } = clientFor({ library, exchange }, { target, session });
  const { late, ms } = deadline;
  const tooLate = () => exchange.fail(new NetFault(url.host, { _tag: "Late", ms }));
  if (late.aborted) tooLate();
  late.addEventListener("abort", tooLate);
  // The library's own deadline comes later.
  const options = {
    signal: AbortSignal.any(signal === undefined ? [late] : [signal, late]),
    timeout: ms * 2,
  };
  try {
    const all = async () => {
      await client.connect(transport, options);
      return work({ client, exchange, options, sessionId: http.sessionId });
    };
    const working = all();
    working.catch(() => undefined);
    return await Promise.race([working, exchange.broken]);
  } catch (error) {
    throw serverFault(reasonFor(error, exchange, library), exchange);
  } finally {
    exchange.isCalling = false;
    const farewell = session === "own" ? http.terminateSession() : goodbye();
    farewell.catch(() => undefined).finally(() => void client.close().catch(() => undefined));
  }
};

/** How a server's session is begun and ended. @param beginMs how long a handshake may take */
export const sessionsAt = (net: NetClient, beginMs: number): AtServer => ({
  begin: (target) =>
    exchanging(net, {
      target,
      maxBytes: SESSION_MAX_BYTES,
      deadline: within(beginMs),
      session: "begun",
      work: ({ client, sessionId }) => {
        const protocol = client.getNegotiatedProtocolVersion();
        const has = sessionId !== undefined && protocol !== undefined;
        return Promise.resolve(has ? { id: sessionId, protocol } : null);
      },
    }),
  end: async (target, name) => {
    const library = await loadLibrary();
    const exchange = new Exchange({ client: net, url: new URL(target.url), maxBytes: SESSION_MAX_BYTES });
    const { http } = clientFor({ library, exchange }, { target, session: { ...name, from: 0 } });
    await http.terminateSession().catch(() => undefined);
  },
});
