/** Instants and ids in readable form. */
import { duration } from "../../src/domain/duration.ts";
import type { Usage } from "../wire.d.ts";

export { quantity as counted } from "../../src/domain/counted.ts";
export { duration };

/** The reader's own time zone. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const LOG_CLOCK = new Intl.DateTimeFormat(undefined, {
  hourCycle: "h23",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const NUMBER = new Intl.NumberFormat(undefined);

/** @returns ms since the epoch */
// eslint-disable-next-line no-restricted-properties -- the page's one clock
export const now = (): number => Date.now();

/** @returns date and time in the reader's zone */
export const moment = (at: string): string => MOMENT.format(new Date(at));

/** A sentence of the service with its instants in the reader's zone. */
export const inZone = (text: string) => text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, moment);

/** @returns the time of the day in the reader's zone */
export const clock = (at: string): string => CLOCK.format(new Date(at));

/** @returns the time of the day in the reader's zone, to the millisecond: of a line in a log */
export const logClock = (at: string): string => LOG_CLOCK.format(new Date(at));

/** @returns "12,345" */
export const grouped = (count: number): string => NUMBER.format(count);

/** @param cost in US dollars @returns "$1.50", "$0.0012" */
export const dollars = (cost: number): string => `$${cost.toFixed(cost < 1 ? 4 : 2)}`;

/** @returns "4,210 tokens in · 318 out · $0.0123" */
export const usageText = ({ input_tokens, output_tokens, cached_tokens, cost_usd }: Usage): string =>
  [
    `${grouped(input_tokens)} tokens in`,
    `${grouped(output_tokens)} out`,
    cached_tokens > 0 && `${grouped(cached_tokens)} cached`,
    cost_usd > 0 && dollars(cost_usd),
  ]
    .filter(Boolean)
    .join(" · ");

/** @returns how long something lasts so far, in whole seconds up to an hour */
export const elapsed = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : duration(ms);
};

/** @returns "3 min ago", "in 2 h" */
export const relative = (at: string): string => {
  const distance = Date.parse(at) - now();
  const size = Math.abs(distance);
  if (size < 5000) return "just now";
  // Whole seconds, because tenths would flicker.
  const text = size < 60_000 ? `${Math.round(size / 1000)} s` : duration(size);
  return distance < 0 ? `${text} ago` : `in ${text}`;
};

/** Ids are time-ordered, so their ends distinguish them. */
export const shortId = (id: string) => id.slice(-8);

const KIB = 1024;

export const size = (bytes: number) => {
  if (bytes < KIB) return `${bytes} B`;
  if (bytes < KIB * KIB) return `${Math.round(bytes / KIB)} KiB`;
  return `${(bytes / KIB / KIB).toFixed(1).replace(/\.0$/, "")} MiB`;
};

/** How many paths these stand for: one entry may be a whole class. */
export const pathCount = (paths: readonly { count?: number }[]) =>
  paths.reduce((sum, { count = 1 }) => sum + count, 0);

export const pathsOf = (count: number) => `${grouped(count)} ${count === 1 ? "path" : "paths"}`;
export const pathsAre = (count: number) => `${pathsOf(count)} ${count === 1 ? "is" : "are"}`;

/** With a capital letter and a full stop. */
export const sentence = (text: string) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
