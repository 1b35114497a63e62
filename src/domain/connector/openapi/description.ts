/**
 * An OpenAPI description (3.0 or 3.1, JSON or YAML) as tools. Its `servers` and `security` decide nothing: the connector's URL and
 * credential do.
 *
 *  OD1 Reading fetches nothing and opens nothing.
 *  OD2 An operation that cannot be a tool is left out and named, and the others stay.
 */
import * as Result from "effect/Result";
import { parse } from "yaml";
import { isRecord } from "../../../ground/record.ts";
import { TOOLS_LIMIT, type CatalogueTool, type LeftOut } from "../catalogue.ts";
import { operationName, operationTool, type FoundOperation, type Reserved } from "./operation.ts";
import { Document, ownField, Unusable, type Table } from "./schema.ts";

/** The largest description, in bytes. */
export const DESCRIPTION_MAX_BYTES = 4 * 1024 * 1024;
/** How often YAML's anchors may be repeated. Descriptions repeat with `$ref`. */
const ALIASES = 100;
const METHOD_NAMES = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/** How many operations are looked at. */
const OPERATIONS_LIMIT = 20_000;

export interface Described {
  readonly tools: readonly CatalogueTool[];
  readonly leftOut: readonly LeftOut[];
}

/** What a connector itself sets, as lists, because it travels between threads. */
export interface ReservedNames {
  /** In lower case. */
  readonly headers: readonly string[];
  readonly query: readonly string[];
}

/** @returns the tools, or why the text is no description, as a sentence about it. */
export const readDescription = (text: string, names: ReservedNames): Result.Result<Described, string> => {
  const read = parseRoot(text);
  if (Result.isFailure(read)) return Result.fail(read.failure);
  const root = read.success;
  const version = ownField(root, "openapi");
  if (typeof version !== "string" || !/^3\.[01](?:\.|$)/.test(version))
    return Result.fail(
      ownField(root, "swagger") === undefined
        ? "It has no field openapi with a version 3.0 or 3.1."
        : "It is Swagger 2.0. Convert it to OpenAPI 3.",
    );
  if (!isRecord(ownField(root, "paths"))) return Result.fail("It has no paths.");
  const reservedNames = { headers: new Set(names.headers), query: new Set(names.query) };
  return Result.succeed(describe(root, reservedNames));
};

const parseRoot = (text: string): Result.Result<Table, string> => {
  const isJson = text.trimStart().startsWith("{");
  try {
    // Parts that YAML shares between places are written out, and one that contains itself is refused.
    const value: unknown = isJson
      ? JSON.parse(text)
      : JSON.parse(
          JSON.stringify(parse(text, { maxAliasCount: ALIASES, logLevel: "error", prettyErrors: false })),
        );
    return isRecord(value) ? Result.succeed(value) : Result.fail("It is no table of fields.");
  } catch (error) {
    // The messages of both readers name a place, and quote a few characters of it.
    const why = error instanceof Error ? error.message.replaceAll(/\s+/g, " ").slice(0, 200) : "";
    return Result.fail(`It is neither JSON nor YAML that can be read: ${why}`);
  }
};

const describe = (root: Table, reservedNames: Reserved): Described => {
  const document = new Document(root);
  const tools: CatalogueTool[] = [];
  const leftOut: LeftOut[] = [];
  const leave = (name: string, why: string): void => void leftOut.push({ name: name.slice(0, 128), why });
  let operationCount = 0;
  for (const operation of findOperations(document, root, leave)) {
    operationCount += 1;
    const name = operationName(operation.operation, operation);
    try {
      // The parts over a limit are counted, and not read.
      if (operationCount > OPERATIONS_LIMIT)
        leave(name, `A description can have ${OPERATIONS_LIMIT} operations.`);
      else if (tools.length >= TOOLS_LIMIT) leave(name, `A connector can have ${TOOLS_LIMIT} tools.`);
      else tools.push(operationTool(document, operation, reservedNames));
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      leave(name, error.message);
    }
  }
  return { tools, leftOut };
};

/** In the order of the description. */
function* findOperations(
  document: Document,
  root: Table,
  leave: (name: string, why: string) => void,
): Generator<FoundOperation> {
  const paths = ownField(root, "paths");
  for (const [path, part] of Object.entries(isRecord(paths) ? paths : {})) {
    if (path.startsWith("x-")) continue;
    try {
      const item = document.table(part);
      for (const method of METHOD_NAMES) {
        const operation = ownField(item, method);
        if (isRecord(operation)) yield { path, method, operation, shared: ownField(item, "parameters") };
      }
    } catch (error) {
      if (!(error instanceof Unusable)) throw error;
      leave(path, error.message);
    }
  }
  const hooks = ownField(root, "webhooks");
  if (isRecord(hooks))
    for (const name of Object.keys(hooks).slice(0, TOOLS_LIMIT))
      leave(name, "It is a webhook: the server sends it, and no agent can receive it.");
}
