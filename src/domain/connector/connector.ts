/**
 * Connectors: the remote servers whose tools a project's agents may use, and the rules for each tool (manifest tables
 * `[executor]`, `[[connectors]]` and `[[connectors.tools]]`). An entry is accepted whole, or refused with every reason.
 *
 *  K1 A missing field closes: tools are not allowed, and sessions of triggers have no access.
 *  K2 The first rule that matches decides. Nothing that a server says about its tools changes a policy.
 */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import {
  KIND_FIELDS,
  readKind,
  type ConnectorKind,
  type Refusals,
  type Refuse,
  type ToolSource,
} from "./connector-kind.ts";
import { isToolName, TOOL_NAME_LIMIT } from "./tool-name.ts";
import { excerpt, quote } from "../text.ts";

/** The most connectors of one manifest. */
export const CONNECTOR_LIMIT = 20;
/** The most rules of one connector, and the most tools that it shows by name. */
export const RULES_LIMIT = 100;
const DIRECT_LIMIT = 50;
/** OpenAI takes 128 tools, and an agent runtime has some of its own. */
export const DIRECT_ALL_LIMIT = 64;
const URL_LIMIT = 2048;

export const POLICIES = ["allow", "ask", "deny"] as const;
export type Policy = (typeof POLICIES)[number];

/** What may start a session that uses a connector: a person, or a trigger. */
export const SESSION_KINDS = ["user", "trigger"] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

export const CREDENTIAL_OWNERS = ["project", "user"] as const;
export type CredentialOwner = (typeof CREDENTIAL_OWNERS)[number];

export type ConnectorAuth =
  | { readonly kind: "none" }
  | { readonly kind: "bearer" }
  /** The credential is `user:password`. */
  | { readonly kind: "basic" }
  /** The credential is the value of this header, or of this parameter of the URL. */
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "query"; readonly name: string }
  | OAuthConnector;

/** `oauth`: a person signs in at the server. `client_credentials`: the service signs in as itself. */
export interface OAuthConnector {
  readonly kind: "oauth" | "client_credentials";
  /** The id of a client that was registered at the server. Null if the secret has it, or if the service registers itself. */
  readonly clientId: string | null;
  /** What the server shall allow. Null means what it asks for itself. */
  readonly scope: string | null;
  /** The authorization server, as the manifest names it. Null if the connector's server says which one it is. */
  readonly issuer: string | null;
  /** How a client with a secret proves itself. Null means as the standard says, by what the server's metadata offer. */
  readonly clientAuth: "basic_plain" | null;
}
export type GrantKind = OAuthConnector["kind"];

export interface ToolRule {
  /** A tool's name, where `*` stands for any characters. */
  readonly match: string;
  readonly policy: Policy;
}

export interface Connector {
  readonly slug: string;
  readonly kind: ConnectorKind;
  /** Where its tools come from. */
  readonly source: ToolSource;
  /** Headers of every request, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The normalised URL of the server. */
  readonly url: string;
  readonly auth: ConnectorAuth;
  /** Whose credential a call has: the project's, or that of the session's person. */
  readonly credential: CredentialOwner;
  readonly sessions: readonly SessionKind[];
  /** Tools that agents see by name. They find all others with `find_tools`. */
  readonly direct: readonly string[];
  readonly rules: readonly ToolRule[];
}

/** The platform's own tools that a project can deny to its agents (own-tools.ts). */
export const GUARDED_TOOLS = ["start_session", "open_change_request"] as const;
export type GuardedTool = (typeof GUARDED_TOOLS)[number];

/** The connectors of a manifest with the policy of tools that no rule matches. */
export interface Executor {
  readonly defaultPolicy: Policy;
  readonly connectors: readonly Connector[];
  /** The platform's own tools that agents may not use. */
  readonly denied: readonly GuardedTool[];
}

export const NO_CONNECTORS: Executor = { defaultPolicy: "ask", connectors: [], denied: [] };

/** One error in an entry. `field` is null if it concerns the whole entry. */
export interface ConnectorFault {
  readonly field: string | null;
  readonly message: string;
}

const SLUG = /^[a-z0-9-]{1,20}$/;
/** A tool's name, where `*` stands for any characters. */
export const TOOL_PATTERN = /^[A-Za-z0-9_./*-]+$/;
const HEADER_NAME = /^[A-Za-z][A-Za-z0-9-]{0,63}$/;
const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
/** RFC 6749, appendix A.4, with a length that fits a URL. */
const SCOPE = /^(?=.{1,1000}$)[!#-[\]-~]+(?: [!#-[\]-~]+)*$/;
const CLIENT_ID_LIMIT = 500;
const CLIENT_ID = /^[ -~]+$/;
/** Headers that the connection or the protocol sets. */
const OWN_HEADER =
  /^(?:accept|accept-encoding|connection|content-.*|cookie|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade|user-agent)$/i;
/** The platform's own name in front of tools. */
export const RESERVED_SLUG = "platform";

const FIELDS = [
  "slug",
  "kind",
  "url",
  "auth",
  "auth_name",
  "client_id",
  "scope",
  "issuer",
  "client_auth",
  "credential",
  "sessions",
  "direct",
  "tools",
  ...Object.keys(KIND_FIELDS),
];

/** Whether a text is a valid slug of a connector, in a manifest and in a URL. */
export const isConnectorSlug = (text: string): boolean => SLUG.test(text);

/** Whether a value is the id of an OAuth client. */
export const isClientId = (value: unknown): value is string =>
  typeof value === "string" && value.length <= CLIENT_ID_LIMIT && CLIENT_ID.test(value);

export interface ReadConnector {
  /** Null if the fault concerns the whole connector. */
  readonly connector: Connector | null;
  readonly faults: readonly ConnectorFault[];
}

/**
 * Reads one entry of `[[connectors]]`, a value from the TOML parser. A name or an operation that is wrong costs only itself. A wrong
 * rule costs the connector, because without it a tool could be allowed.
 */
export const readConnectorEntry = (entry: unknown): ReadConnector => {
  if (!isRecord(entry))
    return {
      connector: null,
      faults: [{ field: null, message: "A connector must be a table of fields." }],
    };
  const faults: ConnectorFault[] = [];
  let isRefused = false;
  const leave = (field: string | null, message: string): void => void faults.push({ field, message });
  const refuse: Refuse = (field, message) => {
    isRefused = true;
    leave(field, message);
  };
  for (const field of Object.keys(entry)
    .filter((name) => !FIELDS.includes(name))
    .slice(0, 10))
    refuse(excerpt(field), `Unknown field ${quote(field)}. A connector has the fields ${FIELDS.join(", ")}.`);
  const slug = readSlug(entry["slug"], refuse);
  const url = readUrl(entry["url"], refuse);
  const connector: Connector = {
    slug,
    ...readKind(entry, url, { refuse, leave }),
    url,
    auth: readAuth(entry, refuse),
    credential: readOwner(entry, refuse),
    sessions: readSessions(entry["sessions"] ?? ["user"], refuse),
    direct: readDirect(entry["direct"] ?? [], { refuse, leave }),
    rules: readRules(entry["tools"] ?? [], refuse),
  };
  return { connector: isRefused ? null : connector, faults };
};

/** @returns the policy of `[executor] default`, or what is wrong with it. Absent: `ask`. */
export const readDefaultPolicy = (value: unknown): Result.Result<Policy, string> => {
  if (value === undefined) return Result.succeed(NO_CONNECTORS.defaultPolicy);
  return isPolicy(value)
    ? Result.succeed(value)
    : Result.fail(`default must be "allow", "ask" or "deny". Until this is fixed, no tool is allowed by it.`);
};

/** K2. @returns the policy, and the pattern that decided: `default` if no rule matches. */
export const ruleFor = (
  { defaultPolicy }: Pick<Executor, "defaultPolicy">,
  { rules }: Pick<Connector, "rules">,
  tool: string,
): { readonly policy: Policy; readonly rule: string } => {
  const rule = rules.find(({ match }) => matchesTool(match, tool));
  return rule === undefined
    ? { policy: defaultPolicy, rule: "default" }
    : { policy: rule.policy, rule: rule.match };
};

/** Whether a name matches a pattern. It takes the leftmost place of each part, so its time is linear. */
export const matchesTool = (pattern: string, tool: string): boolean => {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return tool === pattern;
  const last = rest.pop() ?? "";
  if (!tool.startsWith(first) || tool.length < first.length + last.length) return false;
  const end = tool.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const partAt = tool.indexOf(part, at);
    if (partAt === -1 || partAt + part.length > end) return false;
    at = partAt + part.length;
  }
  return tool.endsWith(last);
};

const readSlug = (value: unknown, refuse: Refuse): string => {
  if (typeof value !== "string") refuse("slug", "slug is required.");
  else if (!SLUG.test(value))
    refuse("slug", `slug ${quote(value)} must have 1 to 20 characters of a-z, 0-9 and -.`);
  else if (value === RESERVED_SLUG) refuse("slug", `slug "${RESERVED_SLUG}" is reserved for the platform.`);
  else return value;
  return "";
};

/** A trigger acts for no person, and a service that signs in as itself for none either. */
const readOwner = (entry: Table, refuse: Refuse): CredentialOwner => {
  const owner = entry["credential"] ?? "project";
  const { auth = "none", sessions } = entry;
  if (owner === "project") return owner;
  if (owner !== "user") refuse("credential", `credential must be "project" or "user".`);
  else if (auth === "none" || auth === "client_credentials")
    refuse(
      "credential",
      `credential "user" needs an auth that a person has: bearer, basic, header, query or oauth.`,
    );
  else if (Array.isArray(sessions) && sessions.includes("trigger"))
    refuse(
      "sessions",
      `sessions must be ["user"] with credential "user": a trigger's session acts for no person, so it has no credential.`,
    );
  return "user";
};

const readUrl = (value: unknown, refuse: Refuse): string => {
  const url = typeof value === "string" && value.length <= URL_LIMIT ? URL.parse(value) : null;
  if (url === null || !["https:", "http:"].includes(url.protocol))
    refuse("url", "url is required and must be an https URL.");
  else if (url.username !== "" || url.password !== "")
    refuse("url", "url must not contain a user or a password. Store the credential with the connector.");
  else if (url.hash !== "") refuse("url", "url must not have a fragment.");
  else return url.href;
  return "";
};

const readAuth = (entry: Table, refuse: Refuse): ConnectorAuth => {
  const kind = entry["auth"] ?? "none";
  const name = entry["auth_name"];
  if (kind === "oauth" || kind === "client_credentials") return readOAuth(kind, entry, refuse);
  for (const field of ["client_id", "scope", "issuer", "client_auth"])
    if (entry[field] !== undefined)
      refuse(field, `${field} is only for auth "oauth" and "client_credentials".`);
  if (kind === "header" || kind === "query") return readNamedAuth(kind, name, refuse);
  else if (kind !== "none" && kind !== "bearer" && kind !== "basic")
    refuse(
      "auth",
      `auth must be "none", "bearer", "basic", "header", "query", "oauth" or "client_credentials".`,
    );
  else if (name !== undefined) refuse("auth_name", `auth_name is only for auth "header" and "query".`);
  else return { kind };
  return { kind: "none" };
};

const readOAuth = (kind: GrantKind, entry: Table, refuse: Refuse): ConnectorAuth => {
  const { client_id: clientId, scope, issuer, client_auth: clientAuth, auth_name: name } = entry;
  if (name !== undefined) refuse("auth_name", `auth_name is only for auth "header" and "query".`);
  if (clientId !== undefined && !isClientId(clientId))
    refuse("client_id", `client_id must have 1 to ${CLIENT_ID_LIMIT} visible ASCII characters.`);
  else if (scope !== undefined && (typeof scope !== "string" || !SCOPE.test(scope)))
    refuse("scope", "scope must be words of visible ASCII characters, with one space between two of them.");
  else if (issuer !== undefined && !isIssuer(issuer))
    refuse(
      "issuer",
      "issuer must be the https URL of the authorization server, without a user, a query and a fragment.",
    );
  else if (clientAuth !== undefined && clientAuth !== "basic_plain")
    refuse("client_auth", `client_auth must be "basic_plain", or absent.`);
  else
    return {
      kind,
      clientId: clientId ?? null,
      scope: scope ?? null,
      issuer: issuer ?? null,
      clientAuth: clientAuth ?? null,
    };
  return { kind: "none" };
};

/** RFC 8414, 2. Kept as it is written: its metadata repeats it. */
const isIssuer = (value: unknown): value is string => {
  const url = typeof value === "string" && value.length <= URL_LIMIT ? URL.parse(value) : null;
  return (
    url !== null &&
    ["https:", "http:"].includes(url.protocol) &&
    url.username + url.password + url.search + url.hash === "" &&
    !/[?#\s]/.test(String(value))
  );
};

const readNamedAuth = (kind: "header" | "query", name: unknown, refuse: Refuse): ConnectorAuth => {
  if (typeof name !== "string")
    refuse(
      "auth_name",
      `auth_name is required: the name of the ${kind === "header" ? "header" : "parameter"}.`,
    );
  else if (kind === "query" && !PARAMETER_NAME.test(name))
    refuse("auth_name", `auth_name ${quote(name)} must have 1 to 64 letters, digits, _, . or -.`);
  else if (kind === "header" && (!HEADER_NAME.test(name) || OWN_HEADER.test(name)))
    refuse("auth_name", `auth_name ${quote(name)} cannot be the header of a credential.`);
  else return { kind, name };
  return { kind: "none" };
};

const readSessions = (value: unknown, refuse: Refuse): readonly SessionKind[] => {
  const kinds: readonly unknown[] = Array.isArray(value) ? value : [];
  if (kinds.length > 0 && kinds.every(isSessionKind))
    return SESSION_KINDS.filter((kind) => kinds.includes(kind));
  refuse("sessions", `sessions must be a list with "user", "trigger" or both.`);
  return [];
};

const readDirect = (value: unknown, { refuse, leave }: Refusals): readonly string[] => {
  if (!Array.isArray(value) || value.length > DIRECT_LIMIT) {
    refuse("direct", `direct must be a list of at most ${DIRECT_LIMIT} names of tools.`);
    return [];
  }
  const names = value.filter((name: unknown, index): name is string => {
    if (typeof name === "string" && isToolName(name)) return true;
    const subject = typeof name === "string" ? `The name ${quote(name)}` : "This entry";
    leave(
      `direct[${index}]`,
      `${subject} is left out: a tool's name has 1 to ${TOOL_NAME_LIMIT} letters, digits, _, -, . or /.`,
    );
    return false;
  });
  return [...new Set(names)];
};

const readRules = (value: unknown, refuse: Refuse): readonly ToolRule[] => {
  if (!Array.isArray(value) || value.length > RULES_LIMIT) {
    refuse("tools", `Write at most ${RULES_LIMIT} rules, each as its own table [[connectors.tools]].`);
    return [];
  }
  return value.flatMap((rule: unknown, index) => {
    const { match, policy, ...others } = isRecord(rule) ? rule : {};
    const place = `tools[${index}]`;
    if (typeof match !== "string" || match.length > TOOL_NAME_LIMIT || !TOOL_PATTERN.test(match))
      refuse(`${place}.match`, "match must be a tool's name, in which * stands for any characters.");
    else if (!isPolicy(policy)) refuse(`${place}.policy`, `policy must be "allow", "ask" or "deny".`);
    else if (Object.keys(others).length > 0) refuse(place, "A rule has the fields match and policy.");
    else return [{ match, policy }];
    return [];
  });
};

const isPolicy = (value: unknown): value is Policy => POLICIES.some((policy) => policy === value);
const isSessionKind = (value: unknown): value is SessionKind => SESSION_KINDS.some((kind) => kind === value);

type Table = Readonly<Record<string, unknown>>;
