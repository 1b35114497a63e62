/**
 * A new trigger as lines of `platform.toml`, and the manifest with these lines at its end (spec.md 2.4). The service's own
 * parser reads the result:
 *
 *  L1 The new manifest has every entry of the old one, unchanged, and the new trigger exactly as it was asked for.
 *  L2 Otherwise there is no manifest: the faults name the fields of the request, or the file's own mistake.
 */
import * as Result from "effect/Result";
import { parseManifest, TRIGGER_LIMIT, type Manifest } from "./manifest.ts";

/** A trigger as a person asks for it. The manifest's parser checks it, and says which fields are missing. */
export interface TriggerWish {
  readonly type: "cron" | "webhook";
  readonly slug?: string;
  readonly name?: string;
  readonly prompt?: string;
  readonly agent?: string;
  readonly cron?: string;
  readonly timezone?: string;
  readonly secret_env?: string;
  /** The conditions of a webhook. An empty list is none. */
  readonly events?: readonly string[];
  readonly branches?: readonly string[];
}

/** A fault of a field of the wish. */
export interface WishFault {
  readonly path: string;
  readonly message: string;
}

export interface Addition {
  /** The new lines alone. */
  readonly lines: string;
  /** The whole new file. */
  readonly text: string;
}

/** `file`: the manifest itself cannot take an entry at its end. */
export type AdditionRefusal =
  | { readonly kind: "wish"; readonly faults: readonly WishFault[] }
  | { readonly kind: "file"; readonly message: string };

/** Control characters, and what ends or escapes a basic string. */
const ESCAPED = /["\\]|\p{Cc}/gu;
const ESCAPED_IN_LINES = /["\\]|[^\P{Cc}\n]/gu;

const escape = (character: string): string => {
  if (character === '"' || character === "\\") return `\\${character}`;
  if (character === "\t") return "\\t";
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
};

/** A TOML string: on one line, or for a text of several lines in three quotes. */
const quoted = (text: string): string =>
  text.includes("\n")
    ? `"""\n${text.replaceAll(ESCAPED_IN_LINES, escape)}"""`
    : `"${text.replaceAll("\n", "\\n").replaceAll(ESCAPED, escape)}"`;

const list = (values: readonly string[]): string => `[${values.map(quoted).join(", ")}]`;

const FIELDS = ["slug", "name", "type", "cron", "timezone", "secret_env", "agent", "prompt"] as const;

/** The entry, and the table of its conditions. */
const entryLines = (wish: TriggerWish): string => {
  const fields = FIELDS.flatMap((field) =>
    wish[field] === undefined ? [] : [`${field} = ${quoted(wish[field])}`],
  );
  const conditions = (["events", "branches"] as const).flatMap((part) =>
    wish[part] === undefined || wish[part].length === 0 ? [] : [`${part} = ${list(wish[part])}`],
  );
  const filter =
    conditions.length === 0 ? [] : ["", `[webhooks.${tableKey(wish.slug ?? "")}]`, ...conditions];
  return `${["[[triggers]]", ...fields, ...filter].join("\n")}\n`;
};

/** A slug is a bare key. Another text is quoted, so that only its own field is at fault. */
const tableKey = (slug: string): string =>
  /^[A-Za-z0-9_-]+$/.test(slug) ? slug : quoted(slug.replaceAll("\n", " "));

const read = (text: string): Manifest => parseManifest(Buffer.from(text));

/** A file that ends without a line end gets one, and an empty line before the addition. */
const appended = (text: string, lines: string): string => {
  if (text.trim() === "") return lines;
  return `${text.endsWith("\n") ? text : `${text}\n`}\n${lines}`;
};

/** An empty list, or the beginning of one. */
const EMPTY_LIST = /^([ \t]*optional[ \t]*=[ \t]*\[)[ \t]*\]/m;
const LIST_BEGIN = /^([ \t]*optional[ \t]*=[ \t]*\[)/m;

/**
 * The name of a secret that senders sign with belongs to `[env]`, so that people find it. It is added where the file
 * allows that safely.
 */
const declared = (text: string, name: string): string => {
  const before = read(text);
  if ([...before.env.required, ...before.env.optional].includes(name)) return text;
  const candidates = [
    text.replace(EMPTY_LIST, (_all, start: string) => `${start}${quoted(name)}]`),
    text.replace(LIST_BEGIN, (start) => `${start}${quoted(name)}, `),
    appended(text, `[env]\noptional = [${quoted(name)}]\n`),
  ];
  const found = candidates.find((candidate) => {
    const after = read(candidate);
    return !after.fatal && isSame(after, before) && after.env.optional.includes(name);
  });
  return found ?? text;
};

/** Whether two manifests say the same, wherever it is in the file. */
const isSame = (one: Manifest, other: Manifest): boolean => essence(one) === essence(other);
/** Without the optional names of `[env]`, to which one may be added. */
const essence = ({ triggers, errors, configDir, env }: Manifest): string =>
  JSON.stringify([triggers, errors.map(({ path, message }) => [path, message]), configDir, env.required]);

/** The wish's lines alone, or its faults. `taken`: the slugs that the manifest has. */
export const triggerLines = (
  wish: TriggerWish,
  taken: ReadonlySet<string>,
): Result.Result<string, readonly WishFault[]> => {
  const lines = entryLines(wish);
  const faults = faultsOf(wish, taken, read(lines));
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(lines);
};

/** The manifest with the trigger, or why it cannot be made (L1, L2). */
export const withTrigger = (
  bytes: Uint8Array,
  wish: TriggerWish,
): Result.Result<Addition, AdditionRefusal> => {
  const before = parseManifest(bytes);
  const [mistake] = before.fatal ? before.errors : [];
  if (mistake !== undefined) {
    const where = mistake.line === null ? "" : ` (line ${mistake.line})`;
    return refusedFile(`${mistake.message}${where} Correct the file first.`);
  }
  const lines = entryLines(wish);
  const alone = read(lines);
  const faults = faultsOf(wish, new Set(before.places.keys()), alone);
  if (faults.length > 0) return Result.fail({ kind: "wish", faults });
  const text = Buffer.from(bytes).toString("utf8");
  const ready = wish.secret_env === undefined ? text : declared(text, wish.secret_env);
  const whole = appended(ready, lines);
  const after = read(whole);
  const made = after.triggers.at(-1);
  const unchanged = { ...after, triggers: after.triggers.slice(0, -1) };
  if (after.fatal || !isSame(unchanged, before) || JSON.stringify([made]) !== JSON.stringify(alone.triggers))
    return refusedFile(
      "The lines cannot be added at the end of platform.toml without a change of other entries. Add them by hand.",
    );
  return Result.succeed({ lines, text: whole });
};

const refusedFile = (message: string): Result.Result<never, AdditionRefusal> =>
  Result.fail({ kind: "file", message });

/** The faults of the wish: those of its entry in a file of its own, and a slug that is taken. */
const faultsOf = (wish: TriggerWish, taken: ReadonlySet<string>, alone: Manifest): readonly WishFault[] => {
  const faults = alone.errors.map(({ path, message }) => ({ path: fieldIn(path), message }));
  const { slug = "" } = wish;
  if (taken.has(slug))
    faults.push({ path: "slug", message: `slug ${slug} is already used. Choose another slug.` });
  if (taken.size >= TRIGGER_LIMIT)
    faults.push({ path: "slug", message: `A manifest can have at most ${TRIGGER_LIMIT} triggers.` });
  return faults;
};

/** `triggers[0].cron` and `webhooks.slug.events[1]` as fields of the wish. */
const fieldIn = (path: string | null): string =>
  /^(?:triggers\[\d+\]|webhooks\..*)\.([a-z_]+)(?:\[\d+\])?$/s.exec(path ?? "")?.[1] ?? "slug";
