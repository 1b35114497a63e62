/**
 * Cron schedules (spec.md 2.4, api.md 4 "Cron"). No library follows these rules at every change of a zone's
 * offset:
 *
 *  K1 If day and weekday are both restricted, either one must match; otherwise both must. A field that begins with `*`
 *     is not restricted.
 *  K2 An hour field that begins with `*` matches real instants only: nothing runs inside a gap, and both passes of an
 *     overlap run.
 *  K3 Any other hour field names local times. A time inside a gap becomes the first instant after it, and several such
 *     times collapse to one. A time inside an overlap runs on its first pass. One formula covers both: the first
 *     instant at which the local clock shows that time or a later one.
 *
 * "Local" numbers below are the wall clock's reading, taken as if it were UTC, in milliseconds since 1970.
 */
import * as Result from "effect/Result";
import { hasEitherDay, isRestricted } from "./cron-days.ts";
import { segmentAt } from "./zone.ts";

/** A parsed expression. Pass it to `nextInstant`. */
export interface CronSchedule {
  /** As written, with single blanks between the fields. */
  readonly expression: string;
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  /** 0 is Sunday; a written 7 becomes 0. */
  readonly weekdays: readonly number[];
  readonly wildcardHour: boolean;
  /** Day and weekday are both restricted, so either one suffices. */
  readonly eitherDay: boolean;
}

interface Field {
  readonly name: string;
  readonly form: RegExp;
  readonly low: number;
  readonly high: number;
  /** The names of its values from `low` on, in lower case. */
  readonly names: readonly string[];
}

const NUMBER = "[0-9]{1,2}";
const MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const WEEKDAY = "sun|mon|tue|wed|thu|fri|sat";

/** The syntax of a field (api.md 4 "Cron"), given the syntax of a value. */
const fieldPattern = (atom: string): RegExp => {
  const item = String.raw`(?:\*|(?:${atom})(?:-(?:${atom}))?)(?:/[0-9]{1,4})?`;
  return new RegExp(`^${item}(?:,${item})*$`, "i");
};

const plain = { form: fieldPattern(NUMBER), names: [] };
const namedField = (names: string) => ({ form: fieldPattern(`${NUMBER}|${names}`), names: names.split("|") });

const FIELDS: readonly Field[] = [
  { name: "second", low: 0, high: 59, ...plain },
  { name: "minute", low: 0, high: 59, ...plain },
  { name: "hour", low: 0, high: 23, ...plain },
  { name: "day", low: 1, high: 31, ...plain },
  { name: "month", low: 1, high: 12, ...namedField(MONTH) },
  { name: "weekday", low: 0, high: 7, ...namedField(WEEKDAY) },
];

/** The longest expression. All values of all fields written out need half of that. */
const EXPRESSION_LIMIT = 1024;
/** Days in each month of a leap year, January first. */
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/**
 * Reads a six-field expression: second minute hour day month weekday. Each field has `*`, numbers, names of months and
 * weekdays, ranges, lists and steps. Blanks around and between fields do not matter (threats.md C05).
 *
 * @returns the schedule, or one sentence that names the wrong field and the reason (C01, C03, C04, C08).
 */
export const parseCron = (expression: string): Result.Result<CronSchedule, string> => {
  if (expression.length > EXPRESSION_LIMIT) {
    return Result.fail(`A cron expression must have at most ${EXPRESSION_LIMIT} characters.`);
  }
  const texts = expression.split(/[ \t\r\n]+/).filter((text) => text !== "");
  if (texts.length !== FIELDS.length) {
    return Result.fail(
      `A cron expression must have six fields (second minute hour day month weekday). This one has ${texts.length}.`,
    );
  }
  const values = readFields(texts);
  if (Result.isFailure(values)) return Result.fail(values.failure);
  const [seconds = [], minutes = [], hours = [], days = [], months = [], weekdays = []] = values.success;
  const eitherDay = hasEitherDay(texts);
  if (!eitherDay && !months.some((month) => days.some((day) => day <= (MONTH_DAYS[month - 1] ?? 0)))) {
    return Result.fail("The cron expression never matches, because its months do not have its days.");
  }
  return Result.succeed({
    expression: texts.join(" "),
    seconds,
    minutes,
    hours,
    days,
    months,
    weekdays: weekdaysFromSunday(weekdays),
    wildcardHour: !isRestricted(texts[2]),
    eitherDay,
  });
};

/** The values of each field, or the fault of the first bad field. */
const readFields = (texts: readonly string[]): Result.Result<readonly (readonly number[])[], string> => {
  const readings = FIELDS.map((field, index) => readField(field, texts[index] ?? ""));
  const malformedIndex = readings.indexOf(null);
  if (malformedIndex !== -1) {
    const why = "use *, numbers, names, ranges, lists and steps, for example 0, */15, 1-5 or MON,THU";
    return Result.fail(badField(malformedIndex, texts, why));
  }
  const values: (readonly number[])[] = [];
  for (const [index, reading] of readings.entries()) {
    if (reading === null) continue;
    if (Result.isFailure(reading)) return Result.fail(badField(index, texts, reading.failure));
    values.push(reading.success);
  }
  return Result.succeed(values);
};

/**
 * How many readings are kept for each field, and the longest text that is kept. Most people write the same short
 * fields.
 */
const READINGS_KEPT = 512;
const KEPT_LENGTH = 64;

type Reading = Result.Result<readonly number[], string>;

const keptReadings = new Map(FIELDS.map((field) => [field, new Map<string, Reading>()]));

/**
 * The values of one field by itself, or its fault. Null if the text does not have a field's syntax. Reading a field is
 * the slowest part of loading a trigger, and a million triggers have few different fields, so readings are kept.
 */
const readField = (field: Field, text: string): Reading | null => {
  const readings = keptReadings.get(field);
  const former = readings?.get(text);
  if (former !== undefined) return former;
  if (!field.form.test(text)) return null;
  const reading = readList(field, text);
  if (Result.isSuccess(reading) && text.length <= KEPT_LENGTH) {
    if (readings?.size === READINGS_KEPT) readings.clear();
    readings?.set(text, reading);
  }
  return reading;
};

const rangeText = (from: string, to: string): string =>
  from.toLowerCase() === to.toLowerCase() ? from : `${from}-${to}`;

/** A range over the end of its field as two ranges, in the spelling of the range: `FRI-MON` is `FRI-SUN,MON`. */
const wrappedRange = ({ high, low, names }: Field, span: string): string => {
  const [start = "", end = ""] = span.split("-");
  const isWeek = names[0] === "sun";
  // A week is written from Monday on. Its 7 is Sunday, too.
  const [first, last] = [isWeek ? 1 : low, high];
  const spell = (value: number, like: string): string =>
    /^\d/.test(like) ? String(value) : (names[(value - low) % names.length] ?? "").toUpperCase();
  const [upper, lower] = [rangeText(start, spell(last, start)), rangeText(spell(first, end), end)];
  return isWeek && Number(end) === 0 ? upper : `${upper},${lower}`;
};

/** The union of a list's items. The text already has a field's syntax. */
const readList = (field: Field, text: string): Result.Result<readonly number[], string> => {
  const { low, high, names } = field;
  const parseAtom = (atom: string): number => {
    const name = names.indexOf(atom.toLowerCase());
    return name === -1 ? Number(atom) : low + name;
  };
  const values = new Set<number>();
  for (const item of text.split(",")) {
    const [span = "", step] = item.split("/");
    const [from = low, end = step === undefined ? from : high] =
      span === "*" ? [low, high] : span.split("-").map(parseAtom);
    // A week that is written from Monday on ends with its Sunday: MON-SUN is 1-7, and SUN-MON stays 0-1.
    const to = end < from && /-sun$/i.test(span) ? high : end;
    if (from > to && from <= high && to >= low)
      return Result.fail(
        `${span} ends before it begins: ${step === undefined ? `write ${wrappedRange(field, span)}` : "write two ranges"}`,
      );
    if (from < low || from > to || to > high) return Result.fail(`${span} is not within ${low}-${high}`);
    if (Number(step) === 0) return Result.fail("a step must be at least 1");
    for (let value = from; value <= to; value += Number(step ?? 1)) values.add(value);
  }
  return Result.succeed([...values].toSorted((a, b) => a - b));
};

const badField = (index: number, texts: readonly string[], why: string): string =>
  `The ${FIELDS[index]?.name} field ${JSON.stringify(texts[index])} is not valid: ${why}.`;

const weekdaysFromSunday = (weekdays: readonly number[]): readonly number[] =>
  [...new Set(weekdays.map((weekday) => weekday % 7))].toSorted((a, b) => a - b);

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/**
 * The largest possible difference between an instant and its local time: it covers every zone's offset and every clock
 * change.
 */
const SHIFT_MS = 26 * HOUR_MS;
/** No instant is due outside these years (threats.md C19). */
const FIRST_INSTANT_MS = Date.UTC(1970, 0);
const LAST_INSTANT_MS = Date.UTC(9999, 11, 30);

/**
 * The first due instant after a given one.
 *
 * @param zone a name that passed `isZoneName`.
 * @param afterMs milliseconds since 1970. The result is later, and a whole second.
 * @returns milliseconds since 1970, or null if nothing is due before the year 10,000.
 */
export const nextInstant = (schedule: CronSchedule, zone: string, afterMs: number): number | null => {
  if (!(afterMs < LAST_INSTANT_MS)) return null;
  const fromMs = Math.floor(Math.max(afterMs, FIRST_INSTANT_MS - 1) / SECOND_MS) * SECOND_MS + SECOND_MS;
  return schedule.wildcardHour ? nextReal(schedule, zone, fromMs) : nextNominal(schedule, zone, fromMs);
};

/** The next due instants after a given one, earliest first. Fewer than `count` only at the end of time. */
export const upcomingInstants = (
  schedule: CronSchedule,
  zone: string,
  range: { readonly afterMs: number; readonly count: number },
): readonly number[] => {
  const instants: number[] = [];
  let next = nextInstant(schedule, zone, range.afterMs);
  while (next !== null && instants.length < range.count) {
    instants.push(next);
    next = nextInstant(schedule, zone, next);
  }
  return instants;
};

/** The due instants from one instant up to another, earliest first. */
export function* instantsBetween(
  schedule: CronSchedule,
  zone: string,
  range: { readonly firstMs: number; readonly untilMs: number },
): Generator<number> {
  let next = nextInstant(schedule, zone, range.firstMs - 1);
  while (next !== null && next <= range.untilMs) {
    yield next;
    next = nextInstant(schedule, zone, next);
  }
}

/** K2: within each stretch of one offset, the first matching local time, if the stretch lasts until then. */
const nextReal = (schedule: CronSchedule, zone: string, fromMs: number): number | null => {
  let atMs = fromMs;
  while (atMs < LAST_INSTANT_MS) {
    const { endMs, offsetMs } = segmentAt(zone, atMs);
    const local = nextMatch(schedule, atMs + offsetMs);
    if (local === null) return null;
    if (local - offsetMs < endMs) return local - offsetMs;
    atMs = endMs;
  }
  return null;
};

/**
 * K3: the first matching local time that the wall clock has not shown yet, at the instant when the clock shows or skips
 * it.
 */
const nextNominal = (schedule: CronSchedule, zone: string, fromMs: number): number | null => {
  const local = nextMatch(schedule, latestShown(zone, fromMs - SECOND_MS) + SECOND_MS);
  if (local === null) return null;
  let atMs = local - SHIFT_MS;
  for (;;) {
    const { endMs, offsetMs } = segmentAt(zone, atMs);
    const shownMs = Math.max(atMs, local - offsetMs);
    if (shownMs < endMs) return shownMs;
    atMs = endMs;
  }
};

/**
 * The latest local time that the clock has shown up to an instant. In an overlap's second pass, that is the end of the
 * first.
 */
const latestShown = (zone: string, untilMs: number): number => {
  let latest = Number.NEGATIVE_INFINITY;
  let atMs = untilMs - SHIFT_MS;
  while (atMs <= untilMs) {
    const { endMs, offsetMs } = segmentAt(zone, atMs);
    latest = Math.max(latest, Math.min(untilMs, endMs - SECOND_MS) + offsetMs);
    atMs = endMs;
  }
  return latest;
};

/** The first matching local time at or after `fromLocal`, a whole second. Null after the last year. */
const nextMatch = (schedule: CronSchedule, fromLocal: number): number | null => {
  const day = Math.floor(fromLocal / DAY_MS);
  const timeOfDay = matchesDay(schedule, day) ? nextTime(schedule, fromLocal - day * DAY_MS) : null;
  if (timeOfDay !== null) return day * DAY_MS + timeOfDay;
  const nextDay = nextMatchingDay(schedule, day + 1);
  return nextDay === null ? null : nextDay * DAY_MS + (nextTime(schedule, 0) ?? 0);
};

/** The first matching time of day at or after `from`, in milliseconds since midnight. */
const nextTime = (schedule: CronSchedule, from: number): number | null => {
  const hour = Math.floor(from / HOUR_MS);
  const minute = Math.floor(from / 60_000) % 60;
  const second = Math.floor(from / SECOND_MS) % 60;
  const [firstMinute = 0] = schedule.minutes;
  const [firstSecond = 0] = schedule.seconds;
  if (schedule.hours.includes(hour)) {
    if (schedule.minutes.includes(minute)) {
      const laterSecond = schedule.seconds.find((value) => value >= second);
      if (laterSecond !== undefined) return secondOfDay(hour, minute, laterSecond);
    }
    const laterMinute = schedule.minutes.find((value) => value > minute);
    if (laterMinute !== undefined) return secondOfDay(hour, laterMinute, firstSecond);
  }
  const laterHour = schedule.hours.find((value) => value > hour);
  return laterHour === undefined ? null : secondOfDay(laterHour, firstMinute, firstSecond);
};

const secondOfDay = (hour: number, minute: number, second: number): number =>
  hour * HOUR_MS + minute * 60_000 + second * SECOND_MS;

/** `day` counts days since 1970-01-01, a Thursday. */
const weekday = (day: number): number => (((day + 4) % 7) + 7) % 7;

/** K1. */
const matchesDay = (schedule: CronSchedule, day: number): boolean => {
  const date = new Date(day * DAY_MS);
  if (!schedule.months.includes(date.getUTCMonth() + 1)) return false;
  const byDay = schedule.days.includes(date.getUTCDate());
  const byWeekday = schedule.weekdays.includes(weekday(day));
  return schedule.eitherDay ? byDay || byWeekday : byDay && byWeekday;
};

const nextMatchingDay = (schedule: CronSchedule, fromDay: number): number | null => {
  let day = fromDay;
  while (day * DAY_MS <= LAST_INSTANT_MS) {
    if (matchesDay(schedule, day)) return day;
    const date = new Date(day * DAY_MS);
    day = schedule.months.includes(date.getUTCMonth() + 1)
      ? day + 1
      : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / DAY_MS;
  }
  return null;
};
