/**
 * Names in a manifest that are almost one of its own, such as `[[trigger]]`. Other tables may be another program's: they say nothing here.
 */
import { nearest } from "../../ground/nearest.ts";
import { isRecord } from "../../ground/record.ts";
import type { ManifestError } from "./manifest-error.ts";
import type { Table } from "./toml.ts";
import { readStatements } from "./toml-text.ts";

/** The tables as a person writes them. */
const TABLES: Readonly<Record<string, string>> = {
  agents: "[agents.<name>]",
  connectors: "[[connectors]]",
  env: "[env]",
  environment: "[environment]",
  executor: "[executor]",
  runtime: "[runtime]",
  triggers: "[[triggers]]",
  webhooks: "[webhooks.<slug>]",
};
/** The fields of the tables whose reader takes what it knows and looks at nothing else. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  env: ["required", "optional"],
  runtime: ["config_dir"],
};
/** How many names are looked at, and how long one can be. A file of a megabyte could hold a hundred thousand. */
const LOOKED_AT = 100;
const NAME_LENGTH = 64;

/** Pairs of a name and the known one that is meant. */
const findMistyped = (table: Table, names: readonly string[]): readonly (readonly [string, string])[] =>
  Object.keys(table)
    .filter((name) => name.length <= NAME_LENGTH && !names.includes(name))
    .slice(0, LOOKED_AT)
    .flatMap((name) => {
      const suggestion = nearest(name.toLowerCase(), names);
      return suggestion === null ? [] : [[name, suggestion] as const];
    });

/** The line on which a path is first written, from 1. */
const findLine = (text: string, path: readonly string[]): number | null => {
  const firstStatement = readStatements(text).find((statement) =>
    path.every((name, at) => statement.path[at] === name),
  );
  return firstStatement === undefined ? null : text.slice(0, firstStatement.from).split("\n").length;
};

/** @returns an error for each, which costs nothing else of the manifest */
export const mistypedNames = (document: Table, text: string): readonly ManifestError[] => {
  const errorAt = (path: readonly string[], message: string): ManifestError => ({
    slug: null,
    index: null,
    path: path.join("."),
    message,
    line: findLine(text, path),
  });
  const tables = findMistyped(document, Object.keys(TABLES)).map(([name, meant]) =>
    errorAt([name], `\`${name}\` is ignored. Did you mean ${TABLES[meant]}?`),
  );
  const fields = Object.entries(FIELDS).flatMap(([table, known]) => {
    const entries = document[table];
    if (!isRecord(entries)) return [];
    return findMistyped(entries, known).map(([name, meant]) =>
      errorAt([table, name], `\`${name}\` of [${table}] is ignored. Did you mean \`${meant}\`?`),
    );
  });
  return [...tables, ...fields];
};
