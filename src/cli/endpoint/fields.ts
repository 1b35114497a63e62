/** The fields of the API's requests, as a command line gives them. */
import { usageFailure } from "../failure.ts";
import type { Input } from "../input.ts";
import { anyId, count, parseWord } from "../words.ts";

/** How a field is read. Words: it is one of them. */
export type Kind =
  | "text"
  | "number"
  | "boolean"
  | "id"
  | "other"
  | readonly string[]
  | { readonly each: Kind };

/** What a request takes. */
export interface Definition {
  readonly query?: Readonly<Record<string, Kind>>;
  readonly body?: Readonly<Record<string, Kind>>;
  /** The fields of the body without which it is refused. */
  readonly needs?: readonly string[];
}

/** How an option sets a field. */
export interface Setting {
  /** The field, by default the one with the option's name. Null if the option sets no field. */
  readonly sets?: string | null;
  /** What a switch sets it to. Absent: true. */
  readonly to?: string | boolean;
  /** The field's value without the option. */
  readonly otherwise?: string | number;
  /** The option names a file with the value: all of it, or its line without the end that editors add. */
  readonly from?: "file" | "line";
  /** The value of the text, where the definitions do not say it. @throws Failure */
  readonly reads?: (text: string, label: string) => unknown;
}

/** A word or an option of a command line that sets a field. */
export interface Source extends Setting {
  /** Its name in errors. */
  readonly label: string;
  readonly part: "query" | "payload";
  readonly field: string;
  readonly kind: Kind;
}

type Text = string | boolean | readonly string[] | undefined;

/** The words of a list between commas. */
export const listWords = (text: string): readonly string[] =>
  text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

const fieldValue = (text: string, kind: Kind, label: string): unknown => {
  if (kind === "number") return count(text, label);
  if (kind === "id") return anyId(text, label);
  if (typeof kind === "string") return text;
  if ("each" in kind) return listWords(text).map((word) => fieldValue(word, kind.each, `Each of ${label}`));
  return parseWord(text, kind, label);
};

/** Undefined: it is not given. */
const sourceValue = async (
  { label, kind, to, otherwise, from, reads }: Source,
  text: Text,
  input: Input,
): Promise<unknown> => {
  if (text === undefined || text === false) return otherwise;
  if (text === true) return to ?? true;
  if (typeof text !== "string") return text.length === 0 ? undefined : text;
  const content = from === undefined ? text : await input.file(text, label);
  const value = from === "line" ? content.replace(/\r?\n$/, "") : content;
  return reads === undefined ? fieldValue(value, kind, label) : reads(value, label);
};

/** The fields of a request that are given. @throws Failure if two sources set one field */
export const givenFields = async (
  sources: readonly (readonly [Source, Text])[],
  input: Input,
): Promise<Readonly<Record<Source["part"], Readonly<Record<string, unknown>>>>> => {
  const fields: Record<Source["part"], Record<string, unknown>> = { query: {}, payload: {} };
  const labels = new Map<string, string>();
  for (const [source, text] of sources) {
    const { label, part, field } = source;
    // oxlint-disable-next-line no-await-in-loop -- one file after the other: both may be standard input
    const value = await sourceValue(source, text, input);
    if (value === undefined) continue;
    const other = labels.get(field);
    if (other !== undefined) throw usageFailure(`Give ${other} or ${label}, not both.`);
    labels.set(field, label);
    fields[part][field] = value;
  }
  return fields;
};

const either = (labels: readonly string[]): string =>
  [labels.slice(0, -1).join(", "), ...labels.slice(-1)].filter((part) => part !== "").join(" or ");

/** @throws Failure for a body that changes nothing, or lacks what the service needs and the sources could give */
export const checkBody = (
  sources: readonly Source[],
  { needs = [] }: Definition,
  { payload, isChange }: { readonly payload: object; readonly isChange: boolean },
): void => {
  const labels = (fits: (source: Source) => boolean) => sources.filter(fits).map(({ label }) => label);
  if (isChange && Object.keys(payload).length === 0)
    throw usageFailure(`Give ${either(labels(() => true))}.`);
  for (const name of needs.filter((field) => !(field in payload))) {
    const [first, ...others] = labels(({ field }) => field === name);
    if (first !== undefined)
      throw usageFailure(
        others.length === 0 ? `${first} is missing.` : `Give ${either([first, ...others])}.`,
      );
  }
};
