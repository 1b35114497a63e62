import * as Schema from "effect/Schema";
import { expect, it } from "vitest";
import { Instant } from "../../src/http/api/schemas.ts";
import { wireForm } from "../../src/http/steps/wire.ts";

const Inner = Schema.Struct({ line_no: Schema.Finite, seen_at: Schema.NullOr(Instant) });
const form = wireForm(
  Schema.Struct({
    user_id: Schema.String,
    began_at: Instant,
    over_at: Schema.NullOr(Instant),
    p50_ms: Schema.Finite,
    place: Schema.NullOr(Inner),
    rows: Schema.Array(Inner),
    at: Schema.String,
    more: Schema.Record(Schema.String, Schema.Unknown),
  }),
);

it("gives a record the keys of its schema, with its instants as text, and nothing else", () => {
  const record = {
    userId: "u",
    beganAt: 0,
    overAt: null,
    p50Ms: 2,
    place: null,
    rows: [
      { lineNo: 0, seenAt: 1000, secret: "hidden" },
      { line_no: 1, seen_at: "1970-01-01T00:00:02.000Z" },
    ],
    at: "as it is",
    more: { someKey: 1, created_at: 2 },
    secret: "hidden",
  };
  expect(form(record)).toStrictEqual({
    user_id: "u",
    began_at: "1970-01-01T00:00:00.000Z",
    over_at: null,
    p50_ms: 2,
    place: null,
    rows: [
      { line_no: 0, seen_at: "1970-01-01T00:00:01.000Z" },
      { line_no: 1, seen_at: "1970-01-01T00:00:02.000Z" },
    ],
    at: "as it is",
    more: { someKey: 1, created_at: 2 },
  });
});
