/**
 * A brute-force reading of api.md 4 "Cron", written from its sentences and sharing nothing with src/domain/cron.ts but
 * the runtime's zone data: it walks through every minute around a change of a zone's offset. Slow on purpose.
 */
import * as fc from "fast-check";

/** One field as text and as the values it stands for. */
export interface OracleField {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

/** second minute hour day month weekday. */
export type OracleFields = readonly [
  OracleField,
  OracleField,
  OracleField,
  OracleField,
  OracleField,
  OracleField,
];

export const textOf = (fields: OracleFields): string => fields.map(({ text }) => text).join(" ");

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Days of wall clock looked at on either side of the change. */
const REACH_DAYS = 4;

/** What the wall clock shows around a change: for each real minute of the window its local minute. */
export interface Edge {
  readonly zone: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Local milliseconds (as if UTC) for each minute from `fromMs` on. */
  readonly local: Float64Array;
  /** Local minute → the instant api.md gives to a fixed local time: its first pass, else the end of its gap. */
  readonly nominal: ReadonlyMap<number, { readonly atMs: number; readonly inGap: boolean }>;
}

export const makeEdge = (zone: string, changeMs: number): Edge => {
  const fromMs = Math.floor(changeMs / MINUTE_MS) * MINUTE_MS - REACH_DAYS * DAY_MS;
  const toMs = fromMs + 2 * REACH_DAYS * DAY_MS;
  const wall = wallClock(zone);
  const local = Float64Array.from({ length: (toMs - fromMs) / MINUTE_MS }, (_, index) =>
    wall(fromMs + index * MINUTE_MS),
  );
  const nominal = new Map<number, { atMs: number; inGap: boolean }>();
  for (const [index, shown] of local.entries()) {
    const atMs = fromMs + index * MINUTE_MS;
    const before = local[index - 1] ?? shown - MINUTE_MS;
    for (let skipped = before + MINUTE_MS; skipped < shown; skipped += MINUTE_MS) {
      if (!nominal.has(skipped)) nominal.set(skipped, { atMs, inGap: true });
    }
    if (!nominal.has(shown)) nominal.set(shown, { atMs, inGap: false });
  }
  return { zone, fromMs, toMs, local, nominal };
};

/** Reads the wall clock from its printed digits, not from an offset. */
const wallClock = (zone: string): ((atMs: number) => number) => {
  const formatter = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  });
  return (atMs) => {
    // "03/14/2027, 01:30"
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0] = formatter
      .format(atMs)
      .split(/\D+/)
      .map(Number);
    return Date.UTC(year, month - 1, day, hour, minute);
  };
};

/** The next due instant inside the edge's window, or null when the window holds none. */
export const bruteForceNext = (fields: OracleFields, edge: Edge, afterMs: number): number | null => {
  const [seconds, , hours] = fields;
  const sortedSeconds = [...seconds.values].toSorted((a, b) => a - b);
  let best: number | null = null;
  const offer = (atMs: number): void => {
    if (atMs > afterMs && atMs < edge.toMs && (best === null || atMs < best)) best = atMs;
  };
  if (hours.text.startsWith("*")) {
    for (const [index, shown] of edge.local.entries()) {
      if (best !== null) break;
      const atMs = edge.fromMs + index * MINUTE_MS;
      if (atMs + MINUTE_MS <= afterMs || !matchesMinute(fields, shown)) continue;
      for (const second of sortedSeconds) offer(atMs + second * 1000);
    }
    return best;
  }
  for (const [shown, { atMs, inGap }] of edge.nominal) {
    if (atMs + MINUTE_MS <= afterMs || (best !== null && atMs > best) || !matchesMinute(fields, shown))
      continue;
    for (const second of sortedSeconds) offer(inGap ? atMs : atMs + second * 1000);
  }
  return best;
};

const matchesMinute = (fields: OracleFields, shown: number): boolean => {
  const [, minutes, hours, days, months, weekdays] = fields;
  const minuteOfDay = Math.floor(shown / MINUTE_MS) % 1440;
  if (!minutes.values.has(minuteOfDay % 60) || !hours.values.has(Math.floor(minuteOfDay / 60))) return false;
  const date = new Date(shown);
  if (!months.values.has(date.getUTCMonth() + 1)) return false;
  const byDay = days.values.has(date.getUTCDate());
  const byWeekday = weekdays.values.has(date.getUTCDay());
  const bothRestricted = !days.text.startsWith("*") && !weekdays.text.startsWith("*");
  return bothRestricted ? byDay || byWeekday : byDay && byWeekday;
};

/** Every change of a zone's offset in a span of years, found by looking at each day's wall clock. */
export const offsetChanges = (zone: string, years: { from: number; to: number }): readonly number[] => {
  const wall = wallClock(zone);
  const offset = (atMs: number): number => wall(atMs) - atMs;
  const changes: number[] = [];
  const end = Date.UTC(years.to, 0);
  for (let atMs = Date.UTC(years.from, 0); atMs < end; atMs += DAY_MS) {
    let [low, high] = [atMs, atMs + DAY_MS];
    if (offset(low) === offset(high)) continue;
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS;
      if (offset(middle) === offset(low)) low = middle;
      else high = middle;
    }
    changes.push(high);
  }
  return changes;
};

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

const star = (from: number, to: number): OracleField => ({ text: "*", values: new Set(range(from, to)) });

const starStep = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc
    .integer({ min: 1, max: to })
    .map((step) => ({ text: `*/${step}`, values: new Set(range(from, to, step)) }));

const list = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc
    .uniqueArray(fc.integer({ min: from, max: to }), { minLength: 1, maxLength: 4 })
    .map((values) => ({ text: values.join(","), values: new Set(values) }));

const span = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc
    .tuple(
      fc.integer({ min: from, max: to }),
      fc.integer({ min: from, max: to }),
      fc.integer({ min: 1, max: 5 }),
    )
    .map(([one, two, step]) => {
      const [low, high] = one < two ? [one, two] : [two, one];
      const text = step === 1 ? `${low}-${high}` : `${low}-${high}/${step}`;
      return { text, values: new Set(range(low, high, step)) };
    });

const anyField = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc.oneof(fc.constant(star(from, to)), starStep(from, to), list(from, to), span(from, to));

/** Hours in which clocks are changed come up more often, as do fields that leave a due instant in the window. */
export const oracleFields: fc.Arbitrary<OracleFields> = fc.tuple(
  fc.oneof({ weight: 3, arbitrary: fc.constant({ text: "0", values: new Set([0]) }) }, anyField(0, 59)),
  anyField(0, 59),
  fc.oneof(anyField(0, 23), list(0, 3), span(0, 4), starStep(0, 23)),
  fc.oneof({ weight: 3, arbitrary: fc.constant(star(1, 31)) }, anyField(1, 31)),
  fc.oneof({ weight: 8, arbitrary: fc.constant(star(1, 12)) }, anyField(1, 12)),
  fc.oneof({ weight: 3, arbitrary: fc.constant(star(0, 6)) }, anyField(0, 6)),
);
