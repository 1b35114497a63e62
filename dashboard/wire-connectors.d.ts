/** The fields of the API's answers about connectors that the page reads (api.md 5). */

export interface Connector {
  slug: string;
  kind: "mcp" | "openapi" | "http";
  url: string;
  auth: "none" | "bearer" | "basic" | "header" | "query" | "oauth" | "client_credentials";
  /** Whose credential a call has. `user`: that of its session's person. State, credential and sign-in are then the reader's. */
  credential_of: "project" | "user";
  sessions: ("user" | "trigger")[];
  state: "ready" | "needs_credential" | "needs_refresh" | "needs_acceptance" | "failed";
  credential: { updated_at: string } | null;
  /** Of auth `oauth` and `client_credentials`. */
  sign_in: {
    status: "signed_in" | "ended";
    issuer: string | null;
    at: string;
    by: string | null;
    failure: string | null;
  } | null;
  usable: number;
  to_accept: number;
  failure: string | null;
  refreshed_at: string | null;
}

export interface ConnectorError {
  path: string | null;
  message: string;
  line: number | null;
}

export interface ConnectorListing {
  connectors: Connector[];
  default_policy: Policy;
  errors: ConnectorError[];
}

export type Policy = "allow" | "ask" | "deny";

export interface ToolShape {
  description: string;
  input_schema: Record<string, unknown>;
  /** Of an HTTP API. */
  request: string | null;
}

export interface Tool extends ToolShape {
  name: string;
  policy: Policy;
  rule: string;
  state: "accepted" | "new" | "changed";
  /** The accepted form, if it differs. */
  accepted: ToolShape | null;
}

export interface Catalogue {
  slug: string;
  /** Names what is accepted. Null: the tools were never fetched. */
  pin: string | null;
  refreshed_at: string | null;
  accepted_at: string | null;
  failure: string | null;
  removed: string[];
  tools: Tool[];
  left_out: { name: string; why: string }[];
}

export interface ConnectorCall {
  id: string;
  session_id: string;
  connector: string;
  tool: string;
  arguments_preview: string;
  at: string;
  /** Null: the call is being performed. */
  outcome: string | null;
  message: string | null;
}

/** A call that waits for a person. */
export interface Approval {
  id: string;
  session_id: string;
  connector: string;
  tool: string;
  /** With secrets masked. Null once the call is settled. */
  arguments: Record<string, unknown> | null;
  expires_at: string;
}
