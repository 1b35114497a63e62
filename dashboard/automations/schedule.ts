/**
 * Schedules in words. A schedule is six fields (second, minute, hour, day, month, weekday). Few forms of it have words; the page shows
 * the others as they are written, with their next instants.
 */
import { hasEitherDay } from "../../src/domain/trigger/cron-days.ts";
import { counted } from "../elements/format.ts";

export type Every = "day" | "weekday" | "week" | "month";

/** A schedule as a person picks it. */
export interface Picked {
  readonly every: Every;
  readonly hour: number;
  readonly minute: number;
  /** 0 is Sunday. Of a week. */
  readonly weekdays: readonly number[];
  /** From 1. Of a month. */
  readonly day: number;
}

type Schedule =
  | { readonly kind: "minutes"; readonly step: number }
  | { readonly kind: "hour"; readonly minute: number }
  /** `minute`: of the day. */
  | { readonly kind: "week"; readonly days: readonly number[]; readonly minute: number }
  | { readonly kind: "month"; readonly day: number; readonly month: number | null; readonly minute: number };

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = "January February March April May June July August September October November December".split(
  " ",
);
const ALL_DAYS = [0, 1, 2, 3, 4, 5, 6];
const WORK_DAYS = [1, 2, 3, 4, 5];
const DAY_MINUTES = 1440;

/** A number, or a name's place. Null: it is something else. */
const numberIn = (text: string, names: readonly string[], first: number): number | null => {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const at = names.findIndex((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase());
  return at === -1 ? null : at + first;
};

const weekdaysIn = (text: string): readonly number[] | null => {
  if (text === "*") return ALL_DAYS;
  const days = new Set<number>();
  for (const item of text.split(",")) {
    const [from = null, to = from] = item.split("-", 2).map((end) => numberIn(end, WEEKDAYS, 0));
    if (from === null || to === null || item.split("-").length > 2 || to < from || to > 7) return null;
    for (let day = from; day <= to; day += 1) days.add(day % 7);
  }
  return [...days].toSorted((one, other) => one - other);
};

const parse = (cron: string): Schedule | null => {
  const [second, minute = "", hour = "", day = "", month = "", weekday = "", ...more] = cron
    .trim()
    .split(/\s+/);
  if (second !== "0" || more.length > 0) return null;
  const isDaily = day === "*" && month === "*";
  const [, step] = /^\*\/(\d{1,2})$/.exec(minute) ?? [];
  if (step !== undefined && hour === "*" && isDaily && weekday === "*")
    return Number(step) > 0 && 60 % Number(step) === 0 ? { kind: "minutes", step: Number(step) } : null;
  if (!/^[0-5]?\d$/.test(minute)) return null;
  if (hour === "*" && isDaily && weekday === "*") return { kind: "hour", minute: Number(minute) };
  if (!/^(?:[01]?\d|2[0-3])$/.test(hour)) return null;
  const time = Number(hour) * 60 + Number(minute);
  if (isDaily) {
    const days = weekdaysIn(weekday);
    return days === null ? null : { kind: "week", days, minute: time };
  }
  const one = month === "*" ? null : numberIn(month, MONTHS, 1);
  if (!/^\d{1,2}$/.test(day) || weekday !== "*" || (one === null && month !== "*")) return null;
  return { kind: "month", day: Number(day), month: one, minute: time };
};

const isSame = (one: readonly number[], other: readonly number[]): boolean => one.join() === other.join();

/** Null: it cannot be picked. */
export const pickedOf = (cron: string): Picked | null => {
  const schedule = parse(cron);
  if (schedule === null || schedule.kind === "minutes" || schedule.kind === "hour") return null;
  const time = { hour: Math.floor(schedule.minute / 60), minute: schedule.minute % 60 };
  if (schedule.kind === "month")
    return schedule.month === null ? { ...time, every: "month", weekdays: [1], day: schedule.day } : null;
  const { days } = schedule;
  if (isSame(days, ALL_DAYS)) return { ...time, every: "day", weekdays: [1], day: 1 };
  return { ...time, every: isSame(days, WORK_DAYS) ? "weekday" : "week", weekdays: days, day: 1 };
};

/** The schedule's line in the manifest. A week without days has a field too few. */
export const cronOf = ({ every, hour, minute, weekdays, day }: Picked): string => {
  const rest = { day: "* * *", weekday: "* * 1-5", week: `* * ${weekdays.join()}`, month: `${day} * *` };
  return `0 ${minute} ${hour} ${rest[every]}`;
};

const two = (count: number): string => String(count).padStart(2, "0");
const clock = (minute: number): string => `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Weekdays with their names, as people order them: a week begins with Monday. */
const named = (days: readonly number[]): readonly (readonly [day: number, name: string])[] =>
  days
    .toSorted((one, other) => ((one + 6) % 7) - ((other + 6) % 7))
    .map((day) => [day, WEEKDAYS[day] ?? ""] as const);

/** All weekdays, for a person to choose from. */
export const NAMED_WEEKDAYS = named(ALL_DAYS);

const daysText = (days: readonly number[]): string => {
  if (isSame(days, ALL_DAYS)) return "day";
  if (isSame(days, WORK_DAYS)) return "weekday";
  return listed(named(days).map(([, name]) => name));
};

const text = (schedule: Schedule): string => {
  switch (schedule.kind) {
    case "minutes":
      return schedule.step === 1 ? "Every minute" : `Every ${counted(schedule.step, "minute")}`;
    case "hour":
      return schedule.minute === 0 ? "Every hour" : `Every hour at minute ${schedule.minute}`;
    case "week":
      return `Every ${daysText(schedule.days)} at ${clock(schedule.minute)}`;
    case "month":
      return schedule.month === null
        ? `Every month on day ${schedule.day} at ${clock(schedule.minute)}`
        : `Every year on ${schedule.day} ${MONTHS[schedule.month - 1] ?? ""} at ${clock(schedule.minute)}`;
  }
};

/** The same schedule on a clock that shows so many minutes more. Null: it has no such words there. */
const shifted = (schedule: Schedule, minutes: number): Schedule | null => {
  if (schedule.kind === "minutes") return minutes % schedule.step === 0 ? schedule : null;
  if (schedule.kind === "hour")
    return { ...schedule, minute: (((schedule.minute + minutes) % 60) + 60) % 60 };
  const days = Math.floor((schedule.minute + minutes) / DAY_MINUTES);
  const minute = schedule.minute + minutes - days * DAY_MINUTES;
  if (days === 0) return { ...schedule, minute };
  if (schedule.kind === "month") return null;
  const moved = schedule.days.map((day) => (day + days + 7) % 7);
  return { ...schedule, minute, days: moved.toSorted((one, other) => one - other) };
};

/** What the wall clock of a zone shows, in minutes. Null: this browser does not know the zone. */
const wallMinutes = (at: string, timeZone: string): number | null => {
  try {
    const format = new Intl.DateTimeFormat("en", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
    });
    const parts = new Map(format.formatToParts(new Date(at)).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    return Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute")) / 60_000;
  } catch {
    return null;
  }
};

interface Zones {
  /** The schedule's. */
  readonly zone: string;
  /** The reader's. */
  readonly own: string;
  /** The difference between the two changes with summer time: it is that of this instant. */
  readonly at: string;
}

/** The schedule in words, on its own clock. Null: it has none. */
export const scheduleWords = (cron: string): string | null => {
  const schedule = parse(cron);
  return schedule === null ? null : text(schedule);
};

/** What surprises people in a schedule that names days of the month and weekdays, too. Null: it does not. */
export const scheduleHint = (cron: string): string | null =>
  hasEitherDay(cron.trim().split(/\s+/))
    ? "It runs on each of these days of the month, and also on each of these weekdays: one of the two is enough."
    : null;

/** The same on the reader's clock. Null: it has no words there. */
export const scheduleWordsFor = (cron: string, { zone, own, at }: Zones): string | null => {
  const schedule = parse(cron);
  const [here, there] = [wallMinutes(at, own), wallMinutes(at, zone)];
  if (schedule === null || here === null || there === null) return null;
  const moved = shifted(schedule, here - there);
  return moved === null ? null : text(moved);
};
