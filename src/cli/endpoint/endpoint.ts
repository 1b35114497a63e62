/**
 * Commands that are one call of the API. A row has the route, the words of the help, and what a person reads of the answer. The rest follows from
 * the API's definitions (definitions.ts): words and options become fields of the request, and are checked as these.
 */
import { type Columns, recordTable } from "./columns.ts";
import {
  type AnyCall,
  type ArgumentValues,
  type Call,
  command,
  type Command,
  type Options,
  type OptionValues,
  type Outcome,
  type Words,
} from "../command.ts";
import { pageNote, pageOptions } from "../commands/lists.ts";
import { namedSession } from "../commands/sessions/session-argument.ts";
import type { Answer, Request, Route } from "../contract.ts";
import { DEFINITIONS } from "./definitions.ts";
import type { Failure } from "../failure.ts";
import { checkBody, givenFields, type Setting, type Source } from "./fields.ts";
import { safeLine, safeJson } from "../terminal.ts";
import { anyId, count, isIdKind, projectId, segment } from "../words.ts";

type Settings = Readonly<Record<string, Options[string] & Setting>>;

type Part<R extends Route, Name extends string> =
  Request<R> extends { readonly [K in Name]?: infer Value } ? Value : never;
type Some<Union> = Union extends object ? Partial<Union> : never;

type ListName<Value> = Value extends object
  ? { [K in keyof Value]-?: Value[K] extends readonly object[] ? K & string : never }[keyof Value]
  : never;

/** A table of the records in a field of the answer, with pages if the API has them. */
type Listed<Value, Called> = {
  readonly [K in ListName<Value>]: Value[K] extends readonly (infer Item)[]
    ? {
        readonly rows: K;
        readonly columns: Columns<Item> | ((call: Called, value: Value) => MaybePromise<Columns<Item>>);
        /** In the place of an empty table. */
        readonly none: string;
        /** Lines below it. */
        readonly below?: (value: Value) => readonly string[];
      }
    : never;
}[ListName<Value>];
type MaybePromise<A> = A | Promise<A>;

type Shown<Value, Called> =
  | Listed<Value, Called>
  /** What became of the thing that the last word names, such as `deleted`. */
  | { readonly done: string }
  | { readonly shows: (value: Value, call: Called) => MaybePromise<Text> };

/** The text, perhaps with other output for programs. */
type Text = string | (Partial<Outcome> & { readonly text: string });

type Row<R extends Route, Names extends readonly string[], O extends Options, Called> = Words<Names, O> &
  Shown<Answer<R>, Called> & {
    /** Fields of the body that are the same in each call. */
    readonly always?: Some<Part<R, "payload">>;
    /** Further parts of the request, for which words and options are not enough. */
    readonly sends?: (call: Called) => MaybePromise<{
      readonly query?: Some<Part<R, "query">>;
      readonly payload?: Some<Part<R, "payload">>;
    }>;
    /** The failure that an answer reports, if any. */
    readonly fails?: (value: Answer<R>, call: Called) => Failure | null;
  };

/** The words that a field of a request may be. */
export const choices = (route: Route, field: string): readonly string[] => {
  const { query, body } = DEFINITIONS[route] ?? {};
  const kind = query?.[field] ?? body?.[field];
  const each = typeof kind === "object" && "each" in kind ? kind.each : kind;
  return Array.isArray(each) ? each : [];
};

const bare = (word: string): string => word.replaceAll(/[[\]]/g, "");

/** A part of the path. */
const pathWord = (word: string, { given, environment }: AnyCall): string | number => {
  if (word === "SESSION") return namedSession(given[word], environment);
  const text = given[word] ?? "";
  if (isIdKind(word)) return anyId(text, word);
  return word === "NUMBER" ? count(text, word) : segment(text, word);
};

/** Nothing, if the option sets no field. @throws Error if the route has no such field: a mistake in the row */
const sourceFor = (route: Route, label: string, setting: Setting & { readonly name: string }): Source[] => {
  const { name, sets: field = name.replaceAll("-", "_") } = setting;
  if (field === null) return [];
  const { query = {}, body = {} } = DEFINITIONS[route] ?? {};
  const kind = query[field] ?? body[field];
  if (kind === undefined) throw new Error(`${route} takes no ${field}`);
  return [{ ...setting, label, field, kind, part: field in query ? "query" : "payload" }];
};

/** What fills a route: its path takes the first words, its fields the further ones and the options. */
const filledBy = (route: Route, takes: readonly string[], options: Settings) => {
  const hasProject = route.includes(":pid");
  const inPath = (route.match(/:\w+/g) ?? []).map((name) => name.slice(1)).filter((name) => name !== "pid");
  const words = takes.map(bare).filter((word) => !hasProject || word !== "PROJECT");
  const sources = [
    ...words.slice(inPath.length).flatMap((word) => sourceFor(route, word, { name: word.toLowerCase() })),
    ...Object.entries(options).flatMap(([name, option]) =>
      sourceFor(route, `--${name}`, { ...option, name }),
    ),
  ];
  return {
    sources,
    path: (call: AnyCall) =>
      Object.fromEntries(inPath.map((name, at) => [name, pathWord(words[at] ?? "", call)])),
    project: async ({ given: { PROJECT: named }, project }: AnyCall) =>
      hasProject ? { pid: named === undefined ? await project() : projectId(named) } : {},
    fields: ({ given, options: values, input }: AnyCall) =>
      givenFields(
        sources.map((source) => [source, given[source.label] ?? values[source.label.slice(2)]]),
        input,
      ),
  };
};

/** A row without the types of its route. */
type AnyRow = Partial<{
  readonly rows: string;
  readonly columns: Columns<object> | ((call: AnyCall, value: unknown) => MaybePromise<Columns<object>>);
  readonly none: string;
  readonly below: (value: unknown) => readonly string[];
  readonly done: string;
  readonly shows: (value: unknown, call: AnyCall) => MaybePromise<Text>;
}>;

const answerText = async (row: AnyRow, value: unknown, call: AnyCall): Promise<Text> => {
  const { rows, columns = {}, none = "", below, done, shows } = row;
  const last = Object.values(call.given).findLast((word) => word !== undefined) ?? "";
  if (done !== undefined) return safeLine(`${last} ${done}`);
  if (rows === undefined) return (await shows?.(value, call)) ?? "";
  const answer = value as Readonly<Record<string, readonly object[]>> & { readonly next_cursor?: string };
  const cells = typeof columns === "function" ? await columns(call, value) : columns;
  pageNote(answer, call.note);
  const lines = (below?.(value) ?? []).map(safeLine);
  return [recordTable(cells, answer[rows] ?? [], none), ...lines].join("\n");
};

/** Defines a command by its row. */
export const endpoint = <
  R extends Route,
  const Names extends readonly string[] = [],
  const O extends Settings = Record<never, never>,
>(
  route: R,
  row: Row<R, Names, O, Call<ArgumentValues<Names>, OptionValues<O>>>,
): Command => {
  const definition = DEFINITIONS[route] ?? {};
  const hasPages = "rows" in row && definition.query?.["cursor"] !== undefined;
  const options = { ...row.options, ...(hasPages && pageOptions) };
  return command<Names, O>({
    ...row,
    options: options as O,
    ...(route.includes(":pid") && row.takes?.[0] !== "PROJECT" && { inProject: true }),
    run: async (words) => {
      const call = words as unknown as AnyCall;
      const filling = filledBy(route, row.takes ?? [], options);
      // The command line is checked before anything is sent.
      const path = filling.path(call);
      const fields = await filling.fields(call);
      const more = await row.sends?.(words);
      const payload = { ...row.always, ...more?.payload, ...fields.payload };
      checkBody(filling.sources, definition, { payload, isChange: route.startsWith("PATCH ") });
      const request = {
        params: { ...(await filling.project(call)), ...path },
        query: { ...more?.query, ...fields.query },
        ...(definition.body !== undefined && { payload }),
      };
      const { value, text } = await call.api().call(route, request as unknown as Request<R>);
      const result = await answerText(row as unknown as AnyRow, value, call);
      const outcome = { json: text, ...(typeof result === "string" ? { text: result } : result) };
      const failure = row.fails?.(value, words) ?? null;
      if (failure === null) return outcome;
      call.write(`${call.json ? safeJson(outcome.json).trimEnd() : outcome.text}\n`);
      throw failure;
    },
  });
};
