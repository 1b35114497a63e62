/**
 * A trigger that a person describes, as lines of `platform.toml` (spec.md 2.4), and what is wrong with the description. The manifest's
 * own parser reads the lines. `edit.ts` puts them into a file.
 */
import * as Result from "effect/Result";
import { DEFAULT_AGENT } from "../sandbox/agent.ts";
import { DEFAULT_TIMEZONE } from "../trigger/trigger.ts";
import { parseManifest, TRIGGER_LIMIT, type Manifest } from "./manifest.ts";

/** A trigger as a person asks for it. The manifest's parser checks it, and says which fields are missing. */
export interface TriggerWish {
  readonly type: "cron" | "webhook";
  readonly slug?: string;
  readonly name?: string;
  /** The template of its sessions' titles. */
  readonly title?: string;
  readonly prompt?: string;
  readonly agent?: string;
  readonly cron?: string;
  readonly timezone?: string;
  readonly secret_env?: string;
  /** Absent: it is on. */
  readonly enabled?: boolean;
  /** The conditions of a webhook. An empty list, or an empty record, is none. */
  readonly events?: readonly string[];
  readonly branches?: readonly string[];
  readonly if?: Readonly<Record<string, string | number | boolean>>;
}

/** A fault of a field of the wish. */
export interface WishFault {
  readonly path: string;
  readonly message: string;
}

/** Control characters, and what ends or escapes a basic string. */
const ESCAPED = /["\\]|\p{Cc}/gu;
const ESCAPED_IN_LINES = /["\\]|[^\P{Cc}\n]/gu;

const escape = (character: string): string => {
  if (character === '"' || character === "\\") return `\\${character}`;
  if (character === "\t") return "\\t";
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
};

/** A TOML string: on one line, or for a text of several lines in three quotes. */
export const quoteToml = (text: string): string =>
  text.includes("\n")
    ? `"""\n${text.replaceAll(ESCAPED_IN_LINES, escape)}"""`
    : `"${text.replaceAll(ESCAPED, escape)}"`;

type Value = string | boolean | readonly string[] | NonNullable<TriggerWish["if"]>;

/** A value of an entry or of its conditions in TOML. */
export const tomlValue = (value: Value): string => {
  if (typeof value === "string") return quoteToml(value);
  if (typeof value === "boolean") return String(value);
  if (isList(value)) return `[${value.map(quoteToml).join(", ")}]`;
  const pairs = Object.entries(value).map(
    ([key, one]) => `${inLine(key)} = ${typeof one === "string" ? inLine(one) : String(one)}`,
  );
  return `{ ${pairs.join(", ")} }`;
};

const isList = (value: Value): value is readonly string[] => Array.isArray(value);

/** An inline table has one line. */
const inLine = (text: string): string => `"${text.replaceAll(ESCAPED, escape)}"`;

/** The fields of an entry, in the order in which they are written. */
export const ENTRY_FIELDS = [
  "slug",
  "name",
  "title",
  "type",
  "enabled",
  "cron",
  "timezone",
  "secret_env",
  "agent",
  "prompt",
] as const;
export type EntryField = (typeof ENTRY_FIELDS)[number];

/** The meaning of a field that is absent. The others have no default. */
export const fieldDefaults = (slug: string): Readonly<Partial<Record<EntryField, string | boolean>>> => ({
  name: slug,
  enabled: true,
  timezone: DEFAULT_TIMEZONE,
  agent: DEFAULT_AGENT,
});

/** The parts of `[webhooks.<slug>]` that a person describes. */
export const CONDITION_PARTS = ["events", "branches", "if"] as const;
export type ConditionPart = (typeof CONDITION_PARTS)[number];

/** A part of the conditions. Undefined if it is empty. */
export const wishedCondition = (wish: TriggerWish, part: ConditionPart) => {
  const value = wish[part];
  return value === undefined || Object.keys(value).length === 0 ? undefined : value;
};

/** The lines of the table of conditions, without its header. */
const conditionLines = (wish: TriggerWish): readonly string[] =>
  CONDITION_PARTS.flatMap((part) => {
    const value = wishedCondition(wish, part);
    return value === undefined ? [] : [`${part} = ${tomlValue(value)}`];
  });

/** The entry, and the table of its conditions. */
export const entryLines = (wish: TriggerWish, end = "\n"): string => {
  const fields = ENTRY_FIELDS.flatMap((field) => {
    const value = wish[field];
    return value === undefined || (field === "enabled" && value === true)
      ? []
      : [`${field} = ${tomlValue(value)}`];
  });
  const conditions = conditionLines(wish);
  const filter = conditions.length === 0 ? [] : ["", filterHeader(wish.slug ?? ""), ...conditions];
  return ["[[triggers]]", ...fields, ...filter, ""].join(end);
};

/** A slug is a bare key. Another text is quoted, so that only its own field is at fault. */
export const filterHeader = (slug: string): string =>
  `[webhooks.${/^[A-Za-z0-9_-]+$/.test(slug) ? slug : inLine(slug)}]`;

/** The wish's lines alone, or its faults. `taken`: the slugs that the manifest has. */
export const triggerLines = (
  wish: TriggerWish,
  takenSlugs: ReadonlySet<string>,
): Result.Result<string, readonly WishFault[]> => {
  const lines = entryLines(wish);
  const faults = wishFaults(wish, takenSlugs, parseManifest(Buffer.from(lines)));
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(lines);
};

/** The faults of the wish: those of its entry in a file of its own, and a slug that is taken. */
const wishFaults = (
  wish: TriggerWish,
  takenSlugs: ReadonlySet<string>,
  alone: Manifest,
): readonly WishFault[] => {
  const faults = alone.errors.map(({ path, message }) => ({ path: fieldIn(path, wish), message }));
  const { slug = "" } = wish;
  if (takenSlugs.has(slug))
    faults.push({ path: "slug", message: `slug ${slug} is already used. Choose another slug.` });
  if (takenSlugs.size >= TRIGGER_LIMIT)
    faults.push({ path: "slug", message: `A manifest can have at most ${TRIGGER_LIMIT} triggers.` });
  return faults;
};

/** `triggers[0].cron` and `webhooks.slug.events[1]` as fields of the wish. */
const fieldIn = (path: string | null, { slug = "" }: TriggerWish): string => {
  const table = `webhooks.${slug}.`;
  const field = path?.startsWith(table) === true ? path.slice(table.length) : path?.split(".")[1];
  return /^[a-z_]+/.exec(field ?? "")?.[0] ?? "slug";
};
