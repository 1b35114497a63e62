/**
 * Catalogues: the tools that a connector's server has, as the service keeps them and a person accepts them.
 *
 *  T1 A tool may be used as it was accepted. A tool that is new, or whose description or schema differs from the accepted
 *     one, is hidden and refused until a person accepts it. The others stay usable.
 *  T2 Only name, description and input schema are kept, and of an HTTP API the request. Nothing else that a server says reaches
 *     an agent.
 *  T3 A tool of an HTTP API is accepted with its request: one that goes to another path or is written otherwise is another tool.
 */
import { createHash } from "node:crypto";
import type { HttpOperation } from "./http-operation.ts";
import { isToolName, shownName } from "./tool-name.ts";
import { schemaFault } from "./tool-schema.ts";

export const TOOLS_LIMIT = 2000;
export const SCHEMA_LIMIT_BYTES = 64 * 1024;
export const DESCRIPTION_LIMIT_BYTES = 4 * 1024;
/** Deeper schemas are not real, and overflow code that walks them. */
export const DEPTH_LIMIT = 64;
/** How many tools that are left out are named. */
const LEFT_OUT_NAMED = 100;

export interface CatalogueTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. The service neither resolves nor applies it. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** The request that a call makes. Absent: the tool is of an MCP server. */
  readonly request?: HttpOperation;
}

/** A tool that is not offered, and why. */
export interface LeftOut {
  readonly name: string;
  readonly why: string;
}

export interface Catalogue {
  /** In the order of their names. */
  readonly tools: readonly CatalogueTool[];
  /** Those that are named. */
  readonly leftOut: readonly LeftOut[];
  /** How many are left out in all. Absent: those that are named. */
  readonly leftOutTotal?: number;
}

export const leftOutTotal = ({
  leftOut,
  leftOutTotal: total = leftOut.length,
}: Pick<Catalogue, "leftOut" | "leftOutTotal">): number => total;

/** Differences between an accepted and a newer catalogue, by the names of tools. */
export interface CatalogueChanges {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Reads what a server listed. A tool that passes a limit is left out, and the others stay.
 *
 * @param unusable what the list itself left out.
 */
export const readCatalogue = (
  slug: string,
  serverTools: readonly CatalogueTool[],
  unusable: readonly LeftOut[] = [],
): Catalogue => {
  const tools = new Map<string, CatalogueTool>();
  const leftOut: LeftOut[] = [...unusable];
  for (const tool of serverTools) {
    const why = tools.size >= TOOLS_LIMIT ? `A connector can have ${TOOLS_LIMIT} tools.` : toolFault(tool);
    const displayName = shownName(slug, tool.name);
    if (why !== null) leftOut.push({ name: tool.name.slice(0, 128), why });
    else if (tools.has(displayName))
      leftOut.push({ name: tool.name, why: "Another tool has the same name." });
    else tools.set(displayName, tool);
  }
  return {
    tools: [...tools.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    leftOut: leftOut.slice(0, LEFT_OUT_NAMED),
    ...(leftOut.length > LEFT_OUT_NAMED && { leftOutTotal: leftOut.length }),
  };
};

/** Catalogues that were read again. */
const readAgain = new WeakMap<Catalogue, Catalogue>();

/** A stored catalogue by the rules of today: it may have been read when fewer tools were left out. */
export const presentCatalogue = (slug: string, catalogue: Catalogue): Catalogue =>
  memoize(readAgain, catalogue, () => {
    const read = readCatalogue(slug, catalogue.tools, catalogue.leftOut);
    if (read.tools.length === catalogue.tools.length) return catalogue;
    const unnamedCount = leftOutTotal(catalogue) - catalogue.leftOut.length;
    return unnamedCount === 0 ? read : { ...read, leftOutTotal: leftOutTotal(read) + unnamedCount };
  });

const toolFault = ({ name, description, inputSchema }: CatalogueTool): string | null => {
  if (!isToolName(name)) return "Its name must have 1 to 128 letters, digits, _, -, . or /.";
  if (Buffer.byteLength(description) > DESCRIPTION_LIMIT_BYTES)
    return `Its description has more than ${DESCRIPTION_LIMIT_BYTES} bytes.`;
  if (!isShallow(inputSchema)) return `Its schema has more than ${DEPTH_LIMIT} levels.`;
  return Buffer.byteLength(JSON.stringify(inputSchema)) > SCHEMA_LIMIT_BYTES
    ? `Its schema has more than ${SCHEMA_LIMIT_BYTES} bytes.`
    : schemaFault(inputSchema);
};

/** Whether JSON has at most `levels` levels. */
export const isShallow = (value: unknown, levels: number = DEPTH_LIMIT): boolean => {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
};

/** Pins that were computed. A tool does not change. */
const pins = new WeakMap<CatalogueTool, string>();

/** Identifies a tool as an agent sees it, with its request (T3). The order of a schema's fields does not matter. */
export const toolPin = (tool: CatalogueTool): string => {
  const cachedPin = pins.get(tool);
  if (cachedPin !== undefined) return cachedPin;
  const { name, description, inputSchema, request } = tool;
  const pin = createHash("sha256")
    .update(canonicalJson([name, description, inputSchema, ...(request === undefined ? [] : [request])]))
    .digest("hex");
  pins.set(tool, pin);
  return pin;
};

/** Identifies a whole catalogue: what a person looked at when accepting it. */
export const cataloguePin = ({ tools }: Pick<Catalogue, "tools">): string =>
  createHash("sha256").update(tools.map(toolPin).join("\n")).digest("hex");

/** Pins of whole catalogues, and tools by their shown names. A catalogue does not change, and each call asks for both. */
const pinSets = new WeakMap<Catalogue, ReadonlySet<string>>();
const shownNames = new WeakMap<Catalogue, ReadonlyMap<string, CatalogueTool>>();

const memoize = <A>(cache: WeakMap<Catalogue, A>, catalogue: Catalogue, make: () => A): A => {
  const value = cache.get(catalogue) ?? make();
  cache.set(catalogue, value);
  return value;
};

/** T1. Whether a tool of the latest catalogue is as it was accepted. */
export const isUsable = (approval: Catalogue | null, tool: CatalogueTool): boolean =>
  approval !== null &&
  memoize(pinSets, approval, () => new Set(approval.tools.map(toolPin))).has(toolPin(tool));

/** T1. The tools of the latest catalogue that are as they were accepted. */
export const usableTools = (approval: Catalogue | null, latest: Catalogue | null): readonly CatalogueTool[] =>
  latest?.tools.filter((tool) => isUsable(approval, tool)) ?? [];

/** The tools of a catalogue by the names that agents see. @param slug the connector whose catalogue it is. */
export const toolsByShownName = (slug: string, catalogue: Catalogue): ReadonlyMap<string, CatalogueTool> =>
  memoize(
    shownNames,
    catalogue,
    () => new Map(catalogue.tools.map((tool) => [shownName(slug, tool.name), tool])),
  );

export const catalogueChanges = (approval: Catalogue | null, latest: Catalogue | null): CatalogueChanges => {
  const before = new Map((approval?.tools ?? []).map((tool) => [tool.name, toolPin(tool)]));
  const after = new Map((latest?.tools ?? []).map((tool) => [tool.name, toolPin(tool)]));
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    changed: [...after].filter(([name, pin]) => (before.get(name) ?? pin) !== pin).map(([name]) => name),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  };
};

/**
 * JSON with the fields of every object in the order of their names. A list of entries in place of an object keeps a
 * field such as `__proto__` as what it is.
 */
const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`).join(",")}}`;
};
