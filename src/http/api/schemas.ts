/** Shapes that several groups share (api.md 1): ids, instants, pages. */
import * as Schema from "effect/Schema";
import type * as AST from "effect/SchemaAST";
import { parseUuid } from "../../domain/ids.ts";
import { Price } from "../../domain/model/prices.ts";
import { ABILITIES } from "../../domain/runtimes/runtime.ts";
import { isBlank, isOneLine } from "../../domain/text.ts";

/** Canonical lower-case spelling only (threats.md W25). */
export const Uuid = Schema.String.annotate({ format: "uuid" }).check(
  Schema.makeFilter((text: string) => (parseUuid(text) === null ? "must be a lower-case UUID" : undefined)),
);

/** Marks an instant for the compiler: records have it as a number, ms since the epoch (steps/wire.ts). */
interface InstantSchema extends Schema.Bottom<string, string, never, never, AST.String, InstantSchema> {
  readonly "~instant"?: never;
}

/** ISO 8601 UTC with milliseconds. */
export const Instant: InstantSchema = Schema.String.annotate({ format: "date-time" });

/** The years that the database can store, too. */
const FIRST_MS = Date.parse("0001-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

const isMoment = (text: string): boolean => {
  const [, day] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d/.exec(text) ?? [];
  const ms = Date.parse(text);
  if (day === undefined || !(ms >= FIRST_MS && ms <= LAST_MS)) return false;
  // `Date` reads the 30th of February as a day of March.
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
};

/** An instant that a client chooses. */
export const Moment = Schema.String.annotate({ format: "date-time" }).check(
  Schema.isMaxLength(40),
  Schema.makeFilter((text: string) =>
    isMoment(text) ? undefined : "must be an instant such as 2027-01-31T00:00:00Z",
  ),
);

/** A valid request that may not work as its project intends. `message` is a sentence that says what to do. */
export const Warning = Schema.Struct({
  code: Schema.Literals(["secret_missing", "webhook_secret_delivered"]),
  message: Schema.String,
}).annotate({ identifier: "Warning" });

const PAGE_MAX = 200;
export const PAGE_DEFAULT = 50;

/** `?limit=` and `?cursor=` of every list. */
export const pageQuery = {
  limit: Schema.optionalKey(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: PAGE_MAX })),
  ),
  cursor: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(512))),
};

export const projectParams = { pid: Uuid };
export const sessionParams = { pid: Uuid, sid: Uuid };
/** A change request, by its number. */
export const numberParams = {
  ...projectParams,
  number: Schema.FiniteFromString.check(
    Schema.isInt(),
    Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }),
  ),
};

/** Whether a column of text and an environment string can hold the value: no NUL, no lone half of a surrogate pair. */
const isStorable = (value: string): boolean => !value.includes("\0") && value.isWellFormed();

const storable = Schema.makeFilter((value: string) =>
  isStorable(value) ? undefined : "must be text without NUL characters and unpaired surrogates",
);

/** Text of at most `maxLength` characters. May be empty. */
export const optionalText = (maxLength: number) =>
  Schema.String.check(Schema.isMaxCodePoints(maxLength), storable);

const notBlank = Schema.makeFilter((value: string) =>
  // An empty one is refused for its length, and NUL is invisible but has its own refusal.
  value === "" || !isStorable(value) || !isBlank(value) ? undefined : "must not be blank",
);

/**
 * Free text from people. Its length is bounded, so that lists stay readable. It is never blank, because it names
 * something.
 */
export const text = (maxLength: number) => optionalText(maxLength).check(Schema.isMinLength(1), notBlank);

const oneLine = Schema.makeFilter((value: string) =>
  // A NUL has its own refusal.
  !isStorable(value) || isOneLine(value) ? undefined : "must be one line without control characters",
);

/** A name or a title: text of one line. */
export const nameText = (maxLength: number) => text(maxLength).check(oneLine);

/** A list in which no two entries are about the same thing. @param subject an entry's, as the message names it: `project_id` */
export const distinctBy = <K extends string>(subject: K) =>
  Schema.makeFilter((entries: readonly { readonly [_ in K]: string }[]) => {
    const subjects = entries.map((entry) => entry[subject]);
    const repeatAt = subjects.findIndex((value, index) => subjects.indexOf(value) < index);
    return repeatAt === -1
      ? undefined
      : { path: [repeatAt, subject], issue: "must not be in the list twice" };
  });

/** Text that becomes an environment string, which is counted in bytes. */
export const textOfBytes = (maxBytes: number) =>
  text(maxBytes).check(
    Schema.makeFilter((value: string) =>
      Buffer.byteLength(value) > maxBytes ? `must have at most ${maxBytes} bytes of UTF-8` : undefined,
    ),
  );

/** Deeper JSON is never a real record, and overflows code that walks it (threats.md W22). */
const JSON_DEPTH_MAX = 64;

/** Whether JSON can be stored and returned: bounded in depth, with storable text only. */
const isKeepable = (value: unknown, levels: number): boolean => {
  if (typeof value === "string") return isStorable(value);
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isKeepable(inner, levels - 1));
};

const keepable = Schema.makeFilter((value: unknown) =>
  isKeepable(value, JSON_DEPTH_MAX)
    ? undefined
    : `must be JSON at most ${JSON_DEPTH_MAX} levels deep, without NUL characters and unpaired surrogates`,
);

/** Any JSON from a client, to store or to render. */
export const Json = Schema.Unknown.check(keepable);

/** Up to 64 KiB of JSON that a client stores with a record. */
const METADATA_MAX = 64 * 1024;
export const Metadata = Schema.Record(Schema.String, Schema.Unknown)
  .check(keepable.abort())
  .check(
    Schema.makeFilter((value) =>
      JSON.stringify(value).length > METADATA_MAX
        ? `must have at most ${METADATA_MAX} characters as JSON`
        : undefined,
    ),
  );

/** Commits and files between two commits. */
export const comparisonFields = {
  /** The total number. `commits` lists the newest 250. */
  commits_total: Schema.Finite,
  commits: Schema.Array(
    Schema.Struct({
      sha: Schema.String,
      subject: Schema.String,
      author_name: Schema.String,
      committed_at: Instant,
    }),
  ),
  /** The total number. `files_changed` lists the first 3,000. */
  files_changed_total: Schema.Finite,
  files_changed: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      additions: Schema.Finite,
      deletions: Schema.Finite,
      binary: Schema.optionalKey(Schema.Literal(true)).annotate({ description: "It has no lines." }),
      renamed_from: Schema.optionalKey(Schema.String).annotate({ description: "The path that it had." }),
      mode: Schema.optionalKey(Schema.String).annotate({
        description:
          "The new mode of a file that has another one since: `100755` is an executable file, `120000` a link.",
      }),
    }),
  ),
};

/** A path of `files_changed`: the diff of this file alone, with its own limit. */
export const diffQuery = { path: Schema.optionalKey(text(4096)) };

/** Of a model in a menu. */
export const modelPrice = Schema.optionalKey(Price).annotate({
  description:
    "Dollars for a million tokens, by the provider's own price or the service's. Absent: none is known.",
});

/** What a runtime lacks. */
export const LacksWire = Schema.Array(
  Schema.Struct({ ability: Schema.Literals(ABILITIES), reason: Schema.String }),
).annotate({
  description: "The abilities that the runtime lacks, each with the reason as a sentence for people.",
});
