/**
 * Changes of the triggers in the text of `platform.toml`: one is added, changed, switched or removed (spec.md 2.4).
 *
 *  E1 Only the lines of the change differ. All others stay byte for byte, with their order and their comments.
 *  E2 The new document says what the old one said, and the change. Both are read and compared. Otherwise the change is refused.
 *  E3 A comment directly above an entry belongs to it, and goes with it, except for one at the file's beginning.
 */
import { isDeepStrictEqual } from "node:util";
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import { fatalError, parseManifest, type Manifest } from "./manifest.ts";
import { parseToml, type Table } from "./toml.ts";
import {
  lineEnd,
  applySplices,
  readStatements,
  type Header,
  type Pair,
  type Splice,
  type Statement,
} from "./toml-text.ts";
import {
  CONDITION_PARTS,
  wishedCondition,
  ENTRY_FIELDS,
  type EntryField,
  entryLines,
  fieldDefaults,
  filterHeader,
  quoteToml,
  tomlValue,
  triggerLines,
  type TriggerWish,
  type WishFault,
} from "./trigger-lines.ts";

/** The wish. `replace`: the entry says what the wish says, and keeps what a wish cannot say. */
export type TriggerChange =
  | { readonly kind: "add"; readonly wish: TriggerWish }
  | { readonly kind: "replace"; readonly slug: string; readonly wish: TriggerWish }
  | { readonly kind: "switch"; readonly slug: string; readonly enabled: boolean }
  | { readonly kind: "remove"; readonly slug: string };

/** `file`: the manifest itself cannot be changed in this way. `unknown`: it has no such trigger. `same`: it says so already. */
export type ChangeRefusal =
  | { readonly kind: "wish"; readonly faults: readonly WishFault[] }
  | { readonly kind: "file"; readonly message: string }
  | { readonly kind: "unknown" | "same" };

type Changed<A> = Result.Result<A, ChangeRefusal>;

const BY_HAND = "Change it by hand.";
const refusedFile = (message: string): Changed<never> => Result.fail({ kind: "file", message });
const refusedWish = (faults: readonly WishFault[]): Changed<never> => Result.fail({ kind: "wish", faults });

/** The document's values. Only this file changes them, to say what it expects. */
type Values = Record<string, unknown>;

const parseDocument = (text: string): Values | null => {
  const read = parseToml(Buffer.from(text));
  return Result.isSuccess(read) ? (read.success as Values) : null;
};

const tableIn = (values: Table, ...path: readonly string[]): Values | null => {
  let value: unknown = values;
  for (const key of path) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : null;
  return isRecord(value) ? (value as Values) : null;
};

const entriesIn = (values: Values): unknown[] => {
  const { triggers } = values;
  return Array.isArray(triggers) ? triggers : [];
};

/** The same table, made if it is absent. */
const madeTable = (values: Values, key: string): Values => {
  const child = tableIn(values, key);
  if (child !== null) return child;
  const table: Values = {};
  values[key] = table;
  return table;
};

/** A table or a list that became empty has no lines. */
const withoutEmpty = (values: Values): Values => {
  const { webhooks, triggers } = values;
  if (isRecord(webhooks) && Object.keys(webhooks).length === 0) delete values["webhooks"];
  if (Array.isArray(triggers) && triggers.length === 0) delete values["triggers"];
  return values;
};

/** E2. @param change makes the old values the new ones */
const says = (before: string, next: string, change: (values: Values) => void): boolean => {
  const [expected, made] = [parseDocument(before), parseDocument(next)];
  if (expected === null || made === null) return false;
  change(expected);
  try {
    // Tables that the parser made and tables that a change made differ in their prototypes.
    return isDeepStrictEqual(plain(withoutEmpty(expected)), plain(withoutEmpty(made)));
  } catch {
    // A document of very many levels overflows the stack (threats.md M07).
    return false;
  }
};

const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain);
  if (!isRecord(value) || value instanceof Date) return value;
  return new Map(Object.entries(value).map(([key, one]) => [key, plain(one)]));
};

/** A manifest as text, with the places of its statements. */
interface Source {
  readonly text: string;
  readonly end: string;
  readonly statements: readonly Statement[];
}

const readSource = (text: string): Source => ({ text, end: lineEnd(text), statements: readStatements(text) });

const begins = (path: readonly string[], prefix: readonly string[]): boolean =>
  prefix.every((key, at) => path[at] === key);

/** The statements below a header, up to the next one. */
const below = (statements: readonly Statement[], header: Header): readonly Pair[] => {
  const pairs: Pair[] = [];
  for (const statement of statements.slice(statements.indexOf(header) + 1)) {
    if (statement.kind === "header") break;
    pairs.push(statement);
  }
  return pairs;
};

interface Entry {
  readonly index: number;
  readonly header: Header;
  readonly pairs: readonly Pair[];
  readonly values: Values;
  /** Its `[webhooks.<slug>]`. */
  readonly conditions: Values | null;
}

/** The entry of a slug, with its place in the text. */
const renderEntry = (source: Source, slug: string, values: Values): Changed<Entry> => {
  const entries = entriesIn(values);
  const index = entries.findIndex((entry) => isRecord(entry) && entry["slug"] === slug);
  const entry = entries[index];
  if (!isRecord(entry)) return Result.fail({ kind: "unknown" });
  const headers = source.statements.filter(
    (statement): statement is Header =>
      statement.kind === "header" &&
      statement.isEntry &&
      statement.path.length === 1 &&
      statement.path[0] === "triggers",
  );
  const header = headers[index];
  if (header === undefined || headers.length !== entries.length)
    return refusedFile(`platform.toml has its triggers in one list, not as entries [[triggers]]. ${BY_HAND}`);
  return Result.succeed({
    index,
    header,
    pairs: below(source.statements, header),
    values: entry as Values,
    conditions: tableIn(values, "webhooks", slug),
  });
};

/** A new line below the anchor, indented as it is. */
const lineBelow = ({ text, end }: Source, anchor: Statement, line: string): Splice => {
  const [indent = ""] = /^[ \t]*/.exec(text.slice(anchor.from, anchor.to)) ?? [];
  // The file's last line may have no end.
  const isEnded = text.slice(0, anchor.to).endsWith("\n");
  const own = isEnded ? `${indent}${line}${end}` : `${end}${indent}${line}`;
  return { from: anchor.to, to: anchor.to, text: own };
};

const cutLines = ({ from, to }: Statement): Splice => ({ from, to, text: "" });

/** The beginning of the comment that belongs to a header (E3). */
const commentBegin = ({ text, statements }: Source, header: Header): number => {
  const former = statements[statements.indexOf(header) - 1]?.to ?? 0;
  let begin = header.from;
  while (begin > former) {
    const line = text.lastIndexOf("\n", begin - 2) + 1;
    if (line < former || !/^[ \t]*#/.test(text.slice(line, begin))) break;
    begin = line;
  }
  return begin === 0 ? header.from : begin;
};

/** Lines of a table, with its comment and the empty lines after it. */
const cutTable = (source: Source, header: Header, last: Statement): Splice => {
  const rest = /^(?:[ \t]*\r?\n)*/.exec(source.text.slice(last.to))?.[0] ?? "";
  return { from: commentBegin(source, header), to: last.to + rest.length, text: "" };
};

/** The statements of a trigger's conditions. */
const conditionStatements = ({ statements }: Source, ...path: readonly string[]): readonly Statement[] =>
  statements.filter((statement) => begins(statement.path, ["webhooks", ...path]));

/** Cuts statements, and the headers among them with all that is below. */
const cutAll = (source: Source, cut: readonly Statement[]): readonly Splice[] =>
  cut.flatMap((statement) =>
    statement.kind === "pair"
      ? [cutLines(statement)]
      : [cutTable(source, statement, below(source.statements, statement).at(-1) ?? statement)],
  );

/** A file whose end was cut has no empty lines at its end. */
const applyToSource = ({ text, end }: Source, splices: readonly Splice[]): string => {
  const result = applySplices(text, splices);
  if (!splices.some(({ from, to }) => to === text.length && from < to)) return result;
  const body = result.trimEnd();
  return body === "" ? "" : body + end;
};

const isSameText = (one: unknown, other: unknown): boolean =>
  typeof one === "string" && typeof other === "string"
    ? one.replaceAll("\r\n", "\n") === other.replaceAll("\r\n", "\n")
    : one === other;

/** The splices that make one field of the entry say this. Undefined: its default. */
const fieldSplices = (
  source: Source,
  { pairs, header, values }: Entry,
  { field, value }: { readonly field: EntryField; readonly value: FieldValue },
): readonly Splice[] => {
  const fallback = fieldDefaults(String(values["slug"]))[field];
  if (isSameText(values[field] ?? fallback, value ?? fallback)) return [];
  const pair = pairs.find(({ path }) => path.at(-1) === field);
  if (value === undefined) return pair === undefined ? [] : [cutLines(pair)];
  if (pair !== undefined) return [{ from: pair.valueFrom, to: pair.valueTo, text: tomlValue(value) }];
  const before = ENTRY_FIELDS.slice(0, ENTRY_FIELDS.indexOf(field));
  const anchor = before
    .toReversed()
    .flatMap((one) => pairs.find(({ path }) => path.at(-1) === one) ?? [])
    .at(0);
  return [lineBelow(source, anchor ?? header, `${field} = ${tomlValue(value)}`)];
};

/** The splices that make the table of conditions say what the wish says. */
const conditionSplices = (source: Source, entry: Entry, wish: TriggerWish): readonly Splice[] => {
  const { conditions: known } = entry;
  const slug = wish.slug ?? "";
  const changedParts = CONDITION_PARTS.filter(
    (part) => !isDeepStrictEqual(plain(known?.[part]), plain(wishedCondition(wish, part))),
  );
  const all = conditionStatements(source, slug);
  const table = all.find(
    (statement): statement is Header => statement.kind === "header" && statement.path.length === 2,
  );
  const splices: Splice[] = [];
  const lines: string[] = [];
  for (const part of changedParts) {
    const value = wishedCondition(wish, part);
    const own = conditionStatements(source, slug, part);
    const [pair] = own;
    if (value !== undefined && own.length === 1 && pair?.kind === "pair" && pair.path.length === 3)
      splices.push({ from: pair.valueFrom, to: pair.valueTo, text: tomlValue(value) });
    else {
      splices.push(...cutAll(source, own));
      if (value !== undefined) lines.push(`${part} = ${tomlValue(value)}`);
    }
  }
  if (lines.length === 0) {
    const isEmpty = changedParts.length > 0 && Object.keys(wantedConditions(wish, known)).length === 0;
    return isEmpty ? cutAll(source, all) : splices;
  }
  if (table !== undefined) {
    const anchor = below(source.statements, table).at(-1) ?? table;
    return [...splices, ...lines.map((line) => lineBelow(source, anchor, line))];
  }
  const anchor = entry.pairs.at(-1) ?? entry.header;
  const block = ["", filterHeader(slug), ...lines].join(source.end);
  const isEnded = source.text.slice(0, anchor.to).endsWith("\n");
  return [
    ...splices,
    { from: anchor.to, to: anchor.to, text: isEnded ? block + source.end : source.end + block },
  ];
};

/** The conditions that the entry will have: those of the wish, and those that a wish cannot say. */
const wantedConditions = (wish: TriggerWish, former: Values | null): Values => {
  const condition: Values = { ...former };
  for (const part of CONDITION_PARTS) {
    const value = wishedCondition(wish, part);
    if (value === undefined) delete condition[part];
    else condition[part] = value;
  }
  return condition;
};

/** The name of a secret that senders sign with belongs to `[env]`, so that people find it. It is added where that is safe. */
const declareSecret = (text: string, name: string): string => {
  const { env } = parseManifest(Buffer.from(text));
  if ([...env.required, ...env.optional].includes(name)) return text;
  const source = readSource(text);
  const list = source.statements.find(
    (statement): statement is Pair =>
      statement.kind === "pair" && statement.path.join(".") === "env.optional",
  );
  const table = source.statements.find(
    ({ kind, path }) => kind === "header" && path.length === 1 && path[0] === "env",
  );
  let candidate = appendLines(source, `[env]${source.end}optional = [${quoteToml(name)}]${source.end}`);
  if (list !== undefined) {
    const at = list.valueFrom + 1;
    const isEmpty = text.slice(at, list.valueTo - 1).trim() === "";
    candidate = applySplices(text, [
      { from: at, to: at, text: isEmpty ? quoteToml(name) : `${quoteToml(name)}, ` },
    ]);
  } else if (table !== undefined)
    candidate = applySplices(text, [lineBelow(source, table, `optional = [${quoteToml(name)}]`)]);
  const isSafe = says(text, candidate, (values) => {
    const own = madeTable(values, "env");
    own["optional"] = [name, ...env.optional];
  });
  return isSafe ? candidate : text;
};

/** The file with lines at its end, and an empty line before them. */
const appendLines = ({ text, end }: Source, lines: string): string => {
  if (text.trim() === "") return lines;
  return `${text.endsWith("\n") ? text : text + end}${end}${lines}`;
};

const withNewEntry = (text: string, wish: TriggerWish): Changed<string> => {
  const alone = parseDocument(entryLines(wish)) ?? {};
  const ready = wish.secret_env === undefined ? text : declareSecret(text, wish.secret_env);
  const source = readSource(ready);
  const whole = appendLines(source, entryLines(wish, source.end));
  const isRight = says(ready, whole, (values) => {
    const { triggers = [] } = values;
    values["triggers"] = Array.isArray(triggers) ? [...triggers, ...entriesIn(alone)] : triggers;
    const conditions = tableIn(alone, "webhooks");
    if (conditions !== null) Object.assign(madeTable(values, "webhooks"), conditions);
  });
  // Conditions without an entry would begin to hold.
  if (!isRight || tableIn(parseDocument(text) ?? {}, "webhooks", wish.slug ?? "") !== null)
    return refusedFile(
      "The lines cannot be added at the end of platform.toml without a change of other entries. Add them by hand.",
    );
  return Result.succeed(whole);
};

interface Edit {
  readonly splices: (source: Source, entry: Entry) => readonly Splice[];
  /** The same for the document's values. */
  readonly change: (values: Values, index: number) => void;
}

const withEdit = (text: string, slug: string, { splices, change }: Edit): Changed<string> => {
  const source = readSource(text);
  return Result.flatMap(renderEntry(source, slug, parseDocument(text) ?? {}), (entry) => {
    const whole = applyToSource(source, splices(source, entry));
    const isRight = says(text, whole, (values) => change(values, entry.index));
    return isRight
      ? Result.succeed(whole)
      : refusedFile(
          `These lines of platform.toml are written in a form that cannot be changed safely. ${BY_HAND}`,
        );
  });
};

type FieldValue = string | boolean | undefined;

/** Fields of the entry, as they will be. Undefined: the default. */
const setFields = (
  values: Values,
  index: number,
  fields: readonly (readonly [EntryField, FieldValue])[],
): void => {
  const own = entriesIn(values)[index] as Values;
  const defaults = fieldDefaults(String(own["slug"]));
  for (const [field, value] of fields) {
    if (isSameText(own[field] ?? defaults[field], value ?? defaults[field])) continue;
    if (value === undefined) delete own[field];
    else own[field] = value;
  }
};

const withReplaced = (text: string, wish: TriggerWish): Changed<string> => {
  const { slug = "", secret_env: secret } = wish;
  const ready = secret === undefined ? text : declareSecret(text, secret);
  const fields = ENTRY_FIELDS.map((field) => [field, wish[field]] as const);
  const hook = tableIn(parseDocument(ready) ?? {}, "webhooks", slug);
  return withEdit(ready, slug, {
    splices: (source, entry) => [
      ...fields.flatMap(([field, value]) => fieldSplices(source, entry, { field, value })),
      ...conditionSplices(source, entry, wish),
    ],
    change: (values, index) => {
      setFields(values, index, fields);
      const conditions = wantedConditions(wish, hook);
      const tables = madeTable(values, "webhooks");
      if (Object.keys(conditions).length === 0) delete tables[slug];
      else tables[slug] = conditions;
    },
  });
};

const withSwitched = (text: string, slug: string, isEnabled: boolean): Changed<string> => {
  const value = isEnabled ? undefined : false;
  return withEdit(text, slug, {
    splices: (source, entry) => fieldSplices(source, entry, { field: "enabled", value }),
    change: (values, index) => setFields(values, index, [["enabled", value]]),
  });
};

const withoutEntry = (text: string, slug: string): Changed<string> =>
  withEdit(text, slug, {
    splices: (source, { header, pairs }) => [
      cutTable(source, header, pairs.at(-1) ?? header),
      ...cutAll(source, conditionStatements(source, slug)),
    ],
    change: (values, index) => {
      entriesIn(values).splice(index, 1);
      const tables = tableIn(values, "webhooks");
      if (tables !== null) delete tables[slug];
    },
  });

const changedText = (text: string, change: TriggerChange): Changed<string> => {
  switch (change.kind) {
    case "add":
      return withNewEntry(text, change.wish);
    case "replace":
      return withReplaced(text, change.wish);
    case "switch":
      return withSwitched(text, change.slug, change.enabled);
    case "remove":
      return withoutEntry(text, change.slug);
  }
};

/** What a wish says differently from the entry that it replaces, and must not. */
const fixedFaults = (change: TriggerChange, { triggers }: Manifest): readonly WishFault[] => {
  if (change.kind !== "replace") return [];
  const { wish, slug } = change;
  const type = triggers.find((trigger) => trigger.slug === slug)?.type ?? wish.type;
  return [...(wish.slug === slug ? [] : ["slug"]), ...(wish.type === type ? [] : ["type"])].map((path) => ({
    path,
    message: `The ${path} of a trigger cannot be changed. Add another trigger instead.`,
  }));
};

/** The faults of the wish itself. The slug that it replaces is not taken. */
const wishFaults = (change: TriggerChange, before: Manifest): readonly WishFault[] => {
  if (change.kind === "switch" || change.kind === "remove") return [];
  const faults = fixedFaults(change, before);
  if (faults.length > 0) return faults;
  const takenSlugs = new Set(before.places.keys());
  if (change.kind === "replace") takenSlugs.delete(change.slug);
  const lines = triggerLines(change.wish, takenSlugs);
  return Result.isSuccess(lines) ? [] : lines.failure;
};

/**
 * The whole new text of the manifest, or why it cannot be made.
 *
 * @param bytes the file, which may be empty
 */
export const changeManifest = (bytes: Uint8Array, change: TriggerChange): Changed<string> => {
  const before = parseManifest(bytes);
  const mistake = fatalError(before);
  if (mistake !== null) {
    const where = mistake.line === null ? "" : ` (line ${mistake.line})`;
    return refusedFile(`${mistake.message}${where} Correct the file first.`);
  }
  const faults = wishFaults(change, before);
  if (faults.length > 0) return refusedWish(faults);
  const text = Buffer.from(bytes).toString("utf8");
  const edit = changedText(text, change);
  return Result.isSuccess(edit) && edit.success === text ? Result.fail({ kind: "same" }) : edit;
};
