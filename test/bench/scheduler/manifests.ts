/** Projects with manifests full of cron triggers, the same ones in every run. */
import { TRIGGER_LIMIT } from "../../../src/domain/manifest/manifest.ts";

/** The months, as an expression names them, without the one of an instant and those beside it. */
const monthsAwayFrom = (instantMs: number): string => {
  const month = new Date(instantMs).getUTCMonth();
  return Array.from({ length: 12 }, (_, index) => index)
    .filter((index) => ![0, 1, 11].includes((index - month + 12) % 12))
    .map((index) => index + 1)
    .join(",");
};

export const uuid = (kind: number, number: number): string =>
  `${String(kind).padStart(8, "0")}-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** How many triggers each project has, a manifest's most. */
export const spread = (triggers: number): readonly number[] =>
  Array.from({ length: Math.ceil(triggers / TRIGGER_LIMIT) }, (_, index) =>
    Math.min(TRIGGER_LIMIT, triggers - index * TRIGGER_LIMIT),
  );

const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Los_Angeles",
  "Asia/Tokyo",
  "Europe/London",
  "Asia/Kolkata",
  "Australia/Sydney",
  "America/Sao_Paulo",
  "Europe/Paris",
] as const;

const JOBS = [
  "triage",
  "dependency-update",
  "release-notes",
  "nightly-review",
  "flaky-tests",
  "docs",
] as const;

/** Daily, on weekdays, weekly, monthly, hourly and every few minutes; one in eight at a second of its own. */
const expressionOf = (seed: number, months: string): string => {
  const minute = seed % 60;
  const hour = Math.floor(seed / 60) % 24;
  const second = seed % 8 === 0 ? Math.floor(seed / 8) % 60 : 0;
  switch (seed % 10) {
    case 0:
    case 1:
      return `${second} ${minute} ${hour} * ${months} 1-5`;
    case 2:
      return `${second} ${minute} ${hour} * ${months} ${["MON", "TUE", "FRI"][hour % 3]}`;
    case 3:
      return `${second} ${minute} ${hour} ${(minute % 28) + 1} ${months} *`;
    case 4:
      return `${second} ${minute} * * ${months} *`;
    case 5:
      return `${second} */${5 + (hour % 11)} 8-18 * ${months} MON-FRI`;
    default:
      return `${second} ${minute} ${hour} * ${months} *`;
  }
};

const entry = (slug: string, cron: string, zone: string): string => `
[[triggers]]
slug = "${slug}"
name = "Look after ${slug}"
type = "cron"
cron = "${cron}"
timezone = "${zone}"
prompt = "Do what ${slug} is for, as of {{ cron.fired_at }}. Open a change request where there is something to change."
`;

/** The manifest of a project, by its number: triggers that are not due for weeks around an instant. */
export const manifestOf = (
  project: number,
  { triggers, quietAt }: { readonly triggers: number; readonly quietAt: number },
): string => {
  const months = monthsAwayFrom(quietAt);
  return Array.from({ length: triggers }, (_, index) => {
    // Spreads the triggers over the day without a pattern: 7919 is prime.
    const seed = (project * TRIGGER_LIMIT + index) * 7919;
    const slug = `${JOBS[index % JOBS.length]}-${project}-${index}`;
    return entry(slug, expressionOf(seed, months), ZONES[Math.floor(seed / 10) % ZONES.length] ?? "UTC");
  }).join("");
};
