/**
 * The port to the servers of connectors: MCP servers, and HTTP APIs whose operations are tools.
 *
 *  U1 A credential goes to the origin of its connector and nowhere else. No redirect leaves that origin.
 *  U2 A host is resolved and checked once for a connection, and exactly the checked address is dialled.
 *  U3 Time and size of everything that a server answers are bounded, also decompressed.
 *  U4 A call is sent once. It is never repeated, except once after a 401, or after a 404 to a session that was kept. Both say that the
 *     server did nothing with it.
 *  U5 Where an MCP server keeps sessions, the calls of one session of ours share one. All other exchanges have one of their own.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { CatalogueTool, LeftOut } from "../domain/connector/catalogue.ts";
import type { HttpOperation } from "../domain/connector/http-operation.ts";
import type { Described, ReservedNames } from "../domain/connector/openapi/description.ts";

export interface ServerTarget {
  /** With the credential, if it is a parameter of the URL. */
  readonly url: string;
  /** Fixed headers, with the credential if it is one of them. */
  readonly headers: Readonly<Record<string, string>>;
  /** The revision that an MCP server spoke last. Null if not known. */
  readonly protocol: string | null;
}

export interface ListedTools {
  readonly tools: readonly CatalogueTool[];
  /** Entries of the list that are no tools at all. */
  readonly leftOut: readonly LeftOut[];
  /** The revision that the server speaks. */
  readonly protocol: string;
}

type Arguments = Readonly<Record<string, unknown>>;

/** The owner of a session that is kept at an MCP server: a session of ours that uses a connector. */
export interface SessionOwner {
  readonly projectId: string;
  readonly sessionId: string;
  /** The person of the session of ours. */
  readonly userId: string;
  /** The connector. */
  readonly slug: string;
  /** Identifies where the connector leads, and whose credential it uses there. A renewed token changes nothing. */
  readonly stand: string;
}

/** A call of a tool that the server itself names. */
export interface McpCall {
  readonly kind: "mcp";
  /** Null if the call has a session of its own (U5). */
  readonly owner: SessionOwner | null;
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly arguments: Arguments;
}

/** A call of an operation below the target's URL. */
export interface HttpCall {
  readonly kind: "http";
  readonly request: HttpOperation;
  readonly arguments: Arguments;
}

export type ToolCall = McpCall | HttpCall;

/**
 * A tool's result, as the server sent it. A status from 400 on is of an HTTP API: its text is an error's body, and callers tell
 * only the beginning of it.
 */
export interface ToolResult {
  readonly content: readonly unknown[];
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  /** The HTTP status of the answer. */
  readonly status: number | null;
}

/** Why there is no result. */
export interface ServerFault {
  readonly _tag: "ServerFault";
  /**
   * As part of a sentence about the server: "refuses connections". It may quote the server, at any length and with the credential.
   * It is cut after its secrets are masked (services/told.ts): no part of one may be left at the cut.
   */
  readonly why: string;
  /** Whether the tool may have run: the call was sent, and its answer is not known. */
  readonly isUnknown: boolean;
  readonly status: number | null;
}

/** A session at a server that this node keeps. */
export interface KeptSession {
  readonly owner: SessionOwner;
  /** Since when no call uses it, in ms since the epoch. Null if one does. */
  readonly idleSince: number | null;
}

/** The sessions at MCP servers that this node keeps. src/duties/server-sessions.ts ends the unneeded ones. */
export interface ServerSessions {
  readonly list: () => readonly KeptSession[];
  /** Completes when at least one is kept. */
  readonly any: Effect.Effect<void>;
  /**
   * Forgets them, and tells their servers, which may take two seconds. A session with calls under way is ended at its server
   * after the last of them.
   */
  readonly end: (owners: readonly SessionOwner[]) => Effect.Effect<void>;
}

export interface Servers {
  /** All tools of an MCP server. */
  readonly list: (target: ServerTarget) => Effect.Effect<ListedTools, ServerFault>;
  /** The text at the target's URL, of an OpenAPI description. */
  readonly document: (target: ServerTarget) => Effect.Effect<string, ServerFault>;
  readonly call: (target: ServerTarget, call: ToolCall) => Effect.Effect<ToolResult, ServerFault>;
  /** Null if none is kept. */
  readonly sessions: ServerSessions | null;
}

const none = Effect.fail<ServerFault>({
  _tag: "ServerFault",
  why: "is not asked by this service",
  isUnknown: false,
  status: null,
});

/** The way to servers. Without one, none is reached. */
export const ConnectorServers = Context.Reference<Servers>("platform/connectors/ConnectorServers", {
  defaultValue: () => ({ list: () => none, document: () => none, call: () => none, sessions: null }),
});

/** Reads OpenAPI descriptions. A description is text of another party, up to `DESCRIPTION_MAX_BYTES`. */
export interface Descriptions {
  /** Fails with a sentence about the description. */
  readonly read: (text: string, names: ReservedNames) => Effect.Effect<Described, string>;
}

export const ConnectorDescriptions = Context.Reference<Descriptions>(
  "platform/connectors/ConnectorDescriptions",
  {
    defaultValue: () => ({ read: () => Effect.fail("This service reads no descriptions.") }),
  },
);
