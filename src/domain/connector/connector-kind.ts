/**
 * What a connector's entry says about its kind: where its tools come from, and the headers of each request. The tools of the kind
 * `http` are written in the entry itself (`[[connectors.operations]]`).
 */
import { isRecord } from "../../ground/record.ts";
import type { CatalogueTool } from "./catalogue.ts";
import { isArgumentHeader } from "./http-operation.ts";
import { readOperations } from "./manifest-operations.ts";

export const CONNECTOR_KINDS = ["mcp", "openapi", "http"] as const;
export type ConnectorKind = (typeof CONNECTOR_KINDS)[number];

/** Where the tools of a connector come from. */
export type ToolSource =
  /** The MCP server is asked. */
  | { readonly from: "server" }
  /** An OpenAPI description in the repository, on the default branch. */
  | { readonly from: "file"; readonly path: string }
  /** An OpenAPI description on the connector's own origin. */
  | { readonly from: "address"; readonly url: string }
  | { readonly from: "manifest"; readonly tools: readonly CatalogueTool[] };

export interface KindOfConnector {
  readonly kind: ConnectorKind;
  readonly source: ToolSource;
  /** Headers of every request, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

type Table = Readonly<Record<string, unknown>>;
export type Refuse = (field: string | null, message: string) => void;

export interface Refusals {
  /** Names what is wrong with the whole entry. */
  readonly refuse: Refuse;
  /** Names a part that is left out. The others stay. */
  readonly leave: Refuse;
}

/** The fields of an entry that belong to some kinds only. */
export const KIND_FIELDS: Readonly<Record<string, readonly ConnectorKind[]>> = {
  headers: ["openapi", "http"],
  description_file: ["openapi"],
  description_url: ["openapi"],
  operations: ["http"],
};

const HEADERS_LIMIT = 20;
const HEADER_VALUE_LIMIT = 1000;
const PATH_LIMIT = 500;

const isKind = (value: unknown): value is ConnectorKind => CONNECTOR_KINDS.some((kind) => kind === value);

/** @param url the connector's URL, normalised; empty if it is wrong. */
export const readKind = (entry: Table, url: string, { refuse, leave }: Refusals): KindOfConnector => {
  const { kind } = entry;
  if (!isKind(kind)) {
    refuse("kind", `kind is required and must be "mcp", "openapi" or "http".`);
    return { kind: "mcp", source: { from: "server" }, headers: {} };
  }
  for (const [field, kinds] of Object.entries(KIND_FIELDS))
    if (entry[field] !== undefined && !kinds.includes(kind))
      refuse(field, `${field} is only for kind ${kinds.map((each) => `"${each}"`).join(" and ")}.`);
  if (kind === "mcp") return { kind, source: { from: "server" }, headers: {} };
  const headers = readHeaders(entry["headers"] ?? {}, refuse);
  if (kind === "openapi") return { kind, source: readDescription(entry, url, refuse), headers };
  const tools = readOperations(entry["operations"], { refuse, leave });
  return { kind, source: { from: "manifest", tools }, headers };
};

const readDescription = (entry: Table, url: string, refuse: Refuse): ToolSource => {
  const { description_file: path, description_url: address } = entry;
  if ((path === undefined) === (address === undefined))
    refuse(
      "description_file",
      "kind openapi needs description_file, the path of an OpenAPI description in the repository, or description_url.",
    );
  else if (address !== undefined) return readAddress(address, url, refuse);
  else if (typeof path === "string" && isFilePath(path)) return { from: "file", path };
  else
    refuse(
      "description_file",
      `description_file must be the path of a file in the repository, for example "api/openapi.yaml", without . and .. as parts.`,
    );
  return { from: "server" };
};

const isFilePath = (path: string): boolean =>
  path.length <= PATH_LIMIT &&
  !/[\p{Cc}\\]/u.test(path) &&
  path.split("/").every((part) => !["", ".", "..", ".git"].includes(part));

const readAddress = (value: unknown, url: string, refuse: Refuse): ToolSource => {
  const address = typeof value === "string" && value.length <= 2048 ? URL.parse(value) : null;
  const origin = URL.parse(url)?.origin;
  if (address === null || address.username !== "" || address.password !== "" || address.hash !== "")
    refuse("description_url", "description_url must be a URL without a user and a fragment.");
  else if (origin !== undefined && address.origin !== origin)
    refuse(
      "description_url",
      `description_url must be at ${origin}, as url is. Put a description of another place into the repository, and name it in description_file.`,
    );
  else return { from: "address", url: address.href };
  return { from: "server" };
};

const readHeaders = (value: unknown, refuse: Refuse): Readonly<Record<string, string>> => {
  const entries: readonly (readonly [string, unknown])[] = isRecord(value)
    ? Object.entries(value)
    : [["", null]];
  const headers = new Map<string, string>();
  for (const [name, text] of entries.slice(0, HEADERS_LIMIT + 1)) {
    const isNamed = isArgumentHeader(name) || name.toLowerCase() === "accept";
    if (/^authorization$/i.test(name))
      refuse("headers", "headers must not have Authorization. Store the credential with the connector.");
    else if (!isNamed || headers.size >= HEADERS_LIMIT || headers.has(name.toLowerCase()))
      refuse(
        "headers",
        `headers must be a table of at most ${HEADERS_LIMIT} different headers, for example { Accept = "application/json" }; ${JSON.stringify(name.slice(0, 64))} cannot be one.`,
      );
    else if (
      typeof text !== "string" ||
      text.length > HEADER_VALUE_LIMIT ||
      !/^[!-~](?:[ -~]*[!-~])?$/.test(text)
    )
      refuse("headers", `headers: the value of ${name} must be one line of ASCII characters.`);
    else headers.set(name.toLowerCase(), text);
  }
  return Object.fromEntries(headers);
};
