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
const mistyped = (table: Table, known: readonly string[]): readonly (readonly [string, string])[] =>
  Object.keys(table)
    .filter((name) => name.length <= NAME_LENGTH && !known.includes(name))
    .slice(0, LOOKED_AT)
    .flatMap((name) => {
      const meant = nearest(name.toLowerCase(), known);
      return meant === null ? [] : [[name, meant] as const];
    });

/** The line on which a path is first written, from 1. */
const lineOf = (text: string, path: readonly string[]): number | null => {
  const found = readStatements(text).find((statement) =>
    path.every((name, at) => statement.path[at] === name),
  );
  return found === undefined ? null : text.slice(0, found.from).split("\n").length;
};

/** @returns an error for each, which costs nothing else of the manifest */
export const mistypedNames = (document: Table, text: string): readonly ManifestError[] => {
  const errorAt = (path: readonly string[], message: string): ManifestError => ({
    slug: null,
    index: null,
    path: path.join("."),
    message,
    line: lineOf(text, path),
  });
  const tables = mistyped(document, Object.keys(TABLES)).map(([name, meant]) =>
    errorAt([name], `\`${name}\` is ignored. Did you mean ${TABLES[meant]}?`),
  );
  const fields = Object.entries(FIELDS).flatMap(([table, known]) => {
    const written = document[table];
    if (!isRecord(written)) return [];
    return mistyped(written, known).map(([name, meant]) =>
      errorAt([table, name], `\`${name}\` of [${table}] is ignored. Did you mean \`${meant}\`?`),
    );
  });
  return [...tables, ...fields];
};
