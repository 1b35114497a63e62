/** Shapes that several groups share (api.md 1): ids, instants, pages. */
import * as Schema from "effect/Schema";
import { parseUuid } from "../../domain/ids.ts";

/** Canonical lower-case spelling only (threats.md W25). */
export const Uuid = Schema.String.check(
  Schema.makeFilter((text: string) => (parseUuid(text) === null ? "expected a lower-case UUID" : undefined)),
).annotate({ format: "uuid" });

/** ISO 8601 UTC with milliseconds. */
export const Instant = Schema.String.annotate({ format: "date-time" });

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

/** Free text that people wrote: bounded, so that a list stays a list. */
export const text = (maxLength: number) =>
  Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(maxLength));

/** Up to 64 KiB of JSON a client keeps with a record. */
const METADATA_MAX = 64 * 1024;
export const Metadata = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((value) =>
    JSON.stringify(value).length > METADATA_MAX
      ? `expected at most ${METADATA_MAX} characters of JSON`
      : undefined,
  ),
);
