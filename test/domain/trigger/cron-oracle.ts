/**
 * A brute-force reading of api.md 4 "Cron", written from its sentences and sharing nothing with src/domain/trigger/cron.ts but
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
const WINDOW_MS = 2 * REACH_DAYS * DAY_MS;

/** What the wall clock shows around a change: for each real minute of the window its local minute. */
export interface Edge {
  readonly fromMs: number;
  readonly toMs: number;
  /** Local milliseconds (as if UTC) for each minute from `fromMs` on. */
  readonly local: Float64Array;
  /** Each local minute once, with the instant of a fixed time (api.md 4 "Cron"): its first pass, else the end of its gap. */
  readonly nominal: readonly NominalMinute[];
}

interface NominalMinute {
  readonly shown: number;
  readonly atMs: number;
  readonly inGap: boolean;
}

export const makeEdge = (zone: string, changeMs: number): Edge => {
  const fromMs = windowStart(changeMs);
  const toMs = fromMs + WINDOW_MS;
  const local = readMinutes(wallClock(zone), fromMs);
  const nominal: NominalMinute[] = [];
  const offered = new Uint8Array(2 * local.length);
  const offer = (minute: NominalMinute): void => {
    const at = local.length / 2 + (minute.shown - fromMs) / MINUTE_MS;
    if (offered[at] === 0) nominal.push(minute);
    offered[at] = 1;
  };
  for (const [index, shown] of local.entries()) {
    const atMs = fromMs + index * MINUTE_MS;
    const before = local[index - 1] ?? shown - MINUTE_MS;
    for (let skipped = before + MINUTE_MS; skipped < shown; skipped += MINUTE_MS) {
      offer({ shown: skipped, atMs, inGap: true });
    }
    offer({ shown, atMs, inGap: false });
  }
  return { fromMs, toMs, local, nominal };
};

const windowStart = (changeMs: number): number =>
  Math.floor(changeMs / MINUTE_MS) * MINUTE_MS - REACH_DAYS * DAY_MS;

/** Reads the clock at each hour, and at each minute of an hour after which it does not show an hour more. */
const readMinutes = (wall: (atMs: number) => number, fromMs: number): Float64Array => {
  const local = new Float64Array(WINDOW_MS / MINUTE_MS);
  for (let hour = 0; hour < local.length; hour += 60) {
    const hourMs = fromMs + hour * MINUTE_MS;
    const start = wall(hourMs);
    const isEven = wall(hourMs + 60 * MINUTE_MS) - start === 60 * MINUTE_MS;
    for (let minute = 0; minute < 60; minute += 1) {
      local[hour + minute] = isEven ? start + minute * MINUTE_MS : wall(hourMs + minute * MINUTE_MS);
    }
  }
  return local;
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
  const firstMinute = Math.max(0, Math.floor((afterMs - edge.fromMs) / MINUTE_MS) - 1);
  if (hours.text.startsWith("*")) {
    for (let index = firstMinute; index < edge.local.length; index += 1) {
      if (best !== null) break;
      if (!matchesMinute(fields, edge.local[index] ?? 0)) continue;
      for (const second of sortedSeconds) offer(edge.fromMs + index * MINUTE_MS + second * 1000);
    }
    return best;
  }
  for (let index = firstNominal(edge, afterMs - MINUTE_MS); index < edge.nominal.length; index += 1) {
    const minute = edge.nominal[index];
    if (minute === undefined || (best !== null && minute.atMs > best)) break;
    if (!matchesMinute(fields, minute.shown)) continue;
    for (const second of sortedSeconds) offer(minute.inGap ? minute.atMs : minute.atMs + second * 1000);
  }
  return best;
};

/** Index of the first nominal minute later than an instant: they are in order of their instants. */
const firstNominal = ({ nominal }: Edge, afterMs: number): number => {
  let [low, high] = [0, nominal.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((nominal[middle]?.atMs ?? 0) <= afterMs) low = middle + 1;
    else high = middle;
  }
  return low;
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

/** A change of a zone's offset, and all that its window shows: two changes with one key have the same edge. */
export interface OffsetChange {
  readonly zone: string;
  readonly atMs: number;
  readonly edgeKey: string;
}

/** Every change of a zone's offset in a span of years, found by looking at its wall clock every few days. */
export const offsetChanges = (
  zone: string,
  span: { readonly from: number; readonly to: number; readonly stepDays: number },
): readonly OffsetChange[] => {
  const wall = wallClock(zone);
  const offset = (atMs: number): number => wall(atMs) - atMs;
  const changes: { atMs: number; before: number; after: number }[] = [];
  const end = Date.UTC(span.to, 0);
  let before = offset(Date.UTC(span.from, 0));
  for (let atMs = Date.UTC(span.from, 0); atMs < end; atMs += span.stepDays * DAY_MS) {
    let [low, high] = [atMs, atMs + span.stepDays * DAY_MS];
    const after = offset(high);
    if (before === after) continue;
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS;
      if (offset(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ atMs: high, before, after });
    before = after;
  }
  return changes.map(({ atMs }) => {
    const inWindow = changes.filter((other) => Math.abs(other.atMs - atMs) <= WINDOW_MS);
    return { zone, atMs, edgeKey: `${atMs} ${JSON.stringify(inWindow)}` };
  });
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

/** Items of any kind, whose values may come twice. */
const mixed = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc
    .array(fc.oneof(starStep(from, to), list(from, to), span(from, to)), { minLength: 2, maxLength: 3 })
    .map((items) => ({
      text: items.map(({ text }) => text).join(","),
      values: new Set(items.flatMap(({ values }) => [...values])),
    }));

const anyField = (from: number, to: number): fc.Arbitrary<OracleField> =>
  fc.oneof(fc.constant(star(from, to)), starStep(from, to), list(from, to), span(from, to), mixed(from, to));

/** Hours in which clocks are changed come up more often, as do fields that leave a due instant in the window. */
export const oracleFields: fc.Arbitrary<OracleFields> = fc.tuple(
  fc.oneof({ weight: 3, arbitrary: fc.constant({ text: "0", values: new Set([0]) }) }, anyField(0, 59)),
  anyField(0, 59),
  fc.oneof(anyField(0, 23), list(0, 3), span(0, 4), starStep(0, 23)),
  fc.oneof({ weight: 3, arbitrary: fc.constant(star(1, 31)) }, anyField(1, 31)),
  fc.oneof({ weight: 8, arbitrary: fc.constant(star(1, 12)) }, anyField(1, 12)),
  fc.oneof({ weight: 3, arbitrary: fc.constant(star(0, 6)) }, anyField(0, 6)),
);
