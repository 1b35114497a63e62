/** The tables `[executor]` and `[[connectors]]` of a manifest. Bad entries are reported beside good ones. */
import * as Result from "effect/Result";
import {
  CONNECTOR_LIMIT,
  DIRECT_ALL_LIMIT,
  GUARDED_TOOLS,
  readConnectorEntry,
  readDefaultPolicy,
  type Connector,
  type Executor,
} from "../connector/connector.ts";
import { isRecord } from "../../ground/record.ts";
import { readOwnRules } from "../connector/own-tools.ts";
import { headerLines, lineMatching, type ManifestError } from "./manifest-error.ts";
import { quantity } from "../counted.ts";

export interface ReadExecutor {
  readonly executor: Executor;
  readonly errors: readonly ManifestError[];
}

/**
 * @param tables the values of `executor` and `connectors`; undefined if the file has none.
 */
export const readExecutor = (
  tables: { readonly executor: unknown; readonly connectors: unknown },
  text: string,
): ReadExecutor => {
  const errors: ManifestError[] = [];
  const defaultPolicy = readDefault(tables.executor, text, errors);
  const deniedTools = readDenied(tables.executor, text, errors);
  const entries = tables.connectors ?? [];
  if (!Array.isArray(entries)) {
    errors.push({
      slug: null,
      index: null,
      path: "connectors",
      message: "Write each connector as its own table with double brackets, [[connectors]].",
      line: lineMatching(text, /^[ \t]*(?:\[[ \t]*)?connectors\b/),
    });
    return { executor: { defaultPolicy, connectors: [], denied: deniedTools }, errors };
  }
  return {
    executor: { defaultPolicy, connectors: readEntries(entries, text, errors), denied: deniedTools },
    errors,
  };
};

type Table = Readonly<Record<string, unknown>>;
const executorLine = (text: string) => lineMatching(text, /^[ \t]*(?:\[{1,2}[ \t]*)?executor\b/);

/** Rules that cannot be read deny everything that they could deny. */
const readDenied = (table: unknown, text: string, errors: ManifestError[]): Executor["denied"] => {
  const read = readOwnRules(isRecord(table) ? table["tools"] : undefined);
  if (Result.isSuccess(read)) return read.success;
  const message = `${read.failure} Until this is fixed, agents cannot use ${GUARDED_TOOLS.join(" and ")}.`;
  errors.push({ slug: null, index: null, path: "executor.tools", message, line: executorLine(text) });
  return GUARDED_TOOLS;
};

const readDefault = (table: unknown, text: string, errors: ManifestError[]): Executor["defaultPolicy"] => {
  const isTable = isRecord(table);
  const fields: Table = isTable ? table : {};
  const stray = Object.keys(fields).find((field) => field !== "default" && field !== "tools");
  const read =
    table !== undefined && (!isTable || stray !== undefined)
      ? Result.fail(
          "[executor] has the field default, and rules [[executor.tools]]. Until this is fixed, no tool is allowed by it.",
        )
      : readDefaultPolicy(fields["default"]);
  if (Result.isSuccess(read)) return read.success;
  errors.push({
    slug: null,
    index: null,
    path: "executor.default",
    message: read.failure,
    line: executorLine(text),
  });
  return "deny";
};

/** The slug of an error is a trigger's, so these errors have none: their path names the entry. */
const readEntries = (
  entries: readonly unknown[],
  text: string,
  errors: ManifestError[],
): readonly Connector[] => {
  const lines = headerLines(text, "connectors", entries.length);
  const connectors = new Map<string, Connector>();
  let room = DIRECT_ALL_LIMIT;
  for (const [index, entry] of entries.slice(0, CONNECTOR_LIMIT).entries()) {
    const { connector, faults } = readConnectorEntry(entry);
    const refuse = (field: string | null, message: string): void => {
      const path = field === null ? `connectors[${index}]` : `connectors[${index}].${field}`;
      errors.push({ slug: null, index, path, message, line: lines?.[index] ?? null });
    };
    for (const { field, message } of faults) refuse(field, message);
    if (connector === null) continue;
    if (connectors.has(connector.slug)) {
      refuse("slug", `slug ${connector.slug} is already used by another connector. Choose another slug.`);
      continue;
    }
    const [direct, found] = [connector.direct.slice(0, room), connector.direct.slice(room)];
    room -= direct.length;
    connectors.set(connector.slug, { ...connector, direct });
    if (found.length > 0)
      refuse(
        "direct",
        `All connectors together can show ${DIRECT_ALL_LIMIT} tools by name, because model providers take few. Agents search for ${found.join(", ")}.`,
      );
  }
  if (entries.length > CONNECTOR_LIMIT) {
    errors.push({
      slug: null,
      index: CONNECTOR_LIMIT,
      path: "connectors",
      message: `A manifest can have at most ${CONNECTOR_LIMIT} connectors. The last ${quantity(entries.length - CONNECTOR_LIMIT, "is", "are")} ignored.`,
      line: lines?.[CONNECTOR_LIMIT] ?? null,
    });
  }
  return [...connectors.values()].toSorted((a, b) => (a.slug < b.slug ? -1 : 1));
};
