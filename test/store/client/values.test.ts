/** How values travel: what a type arrives as, and that a parameter is what was sent (connection/values.ts). */
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { live } from "../../support/postgres/live.ts";

const samples = <A>(values: fc.Arbitrary<A>): readonly A[] => fc.sample(values, { numRuns: 200, seed: 7 });

describe("an instant", () => {
  live("arrives as ms since the epoch with its microseconds cut, from year 1 to the last of Date", (sql) =>
    Effect.gen(function* () {
      const dates = [
        ...samples(fc.date({ min: new Date("0001-01-01"), noInvalidDate: true })),
        new Date(8.64e15),
        new Date(0),
        new Date(-1),
      ];
      const rows = yield* sql<{ readonly at: number }>`
        SELECT at + interval '999 microseconds' AS at FROM unnest(${dates}::timestamptz[]) AS at`;
      expect(rows.map(({ at }) => at)).toEqual(dates.map((date) => date.getTime()));
      for (const date of dates.slice(0, 20)) {
        expect(yield* sql`SELECT ${date}::timestamptz AS at`).toEqual([{ at: date.getTime() }]);
      }
    }),
  );

  live("has its zone, and infinity is none", (sql) =>
    Effect.gen(function* () {
      const rows = yield* sql`
        SELECT '2026-11-20 12:00:00+05:30'::timestamptz AS zone, 'infinity'::timestamptz AS endless,
          ARRAY['2026-11-20 12:00:00+00'::timestamptz, NULL] AS several`;
      expect(rows).toEqual([
        {
          zone: Date.UTC(2026, 10, 20, 6, 30),
          endless: Number.NaN,
          several: [Date.UTC(2026, 10, 20, 12), null],
        },
      ]);
    }),
  );
});

describe("an integer of 64 bits", () => {
  live("arrives as text with all its digits", (sql) =>
    Effect.gen(function* () {
      const numbers = [
        ...samples(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
        0n,
        -1n,
        2n ** 32n - 1n,
        2n ** 32n,
        -(2n ** 63n),
        2n ** 63n - 1n,
      ].map(String);
      const rows = yield* sql<{ readonly n: string }>`SELECT n FROM unnest(${numbers}::bigint[]) AS n`;
      expect(rows.map(({ n }) => n)).toEqual(numbers);
      expect(
        yield* sql`SELECT '18446744073709551615'::xid8 AS id, count(*) AS count FROM generate_series(1, 3)`,
      ).toEqual([{ id: "18446744073709551615", count: "3" }]);
    }),
  );
});

describe("a list", () => {
  live("keeps quotes, backslashes, commas, empty texts and nothings", (sql) =>
    Effect.gen(function* () {
      const texts = fc.string({
        unit: fc.constantFrom('"', "\\", ",", "{", "}", " ", "'", "a", "ü", "NULL"),
      });
      for (const list of fc.sample(fc.array(fc.option(texts), { maxLength: 6 }), { numRuns: 50, seed: 7 })) {
        expect(yield* sql`SELECT ${list}::text[] AS list`).toEqual([{ list }]);
      }
      expect(
        yield* sql`SELECT ${[1, -2.5]}::numeric[] AS numbers, ${[true, false]}::boolean[] AS answers,
          ${[{ a: '"' }]}::jsonb[] AS objects, array_to_json(${[
            [1, 2],
            [3, 4],
          ]}::int[]) AS nested,
          ${[Buffer.from([0, 255])]}::bytea[] AS bytes`,
      ).toEqual([
        {
          numbers: ["1", "-2.5"],
          answers: [true, false],
          objects: [{ a: '"' }],
          nested: [
            [1, 2],
            [3, 4],
          ],
          bytes: [Buffer.from([0, 255])],
        },
      ]);
    }),
  );
});

describe("bytes", () => {
  live("are a Buffer of their own, whatever arrives later", (sql) =>
    Effect.gen(function* () {
      const [first] = yield* sql<{ readonly bytes: Buffer }>`SELECT ${Buffer.alloc(1000, 1)}::bytea AS bytes`;
      yield* sql`SELECT ${Buffer.alloc(1000, 2)}::bytea AS bytes`;
      expect(first?.bytes).toEqual(Buffer.alloc(1000, 1));
      expect(Buffer.isBuffer(first?.bytes)).toBe(true);
    }),
  );
});

describe("a parameter", () => {
  live("has the type that the statement gives it", (sql) =>
    Effect.gen(function* () {
      const rows = yield* sql`
        SELECT ${5}::text AS text, ${"5"}::int + ${1}::int AS sum, ${2.5}::float8 AS double, ${true}::boolean AS yes,
          ${{ a: 1 }}::jsonb AS json, ${null}::uuid AS nothing, ${9007199254740991}::bigint AS big`;
      expect(rows).toEqual([
        { text: "5", sum: 6, double: 2.5, yes: true, json: { a: 1 }, nothing: null, big: "9007199254740991" },
      ]);
    }),
  );
});
