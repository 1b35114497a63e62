/** Manifests of simulated projects. Periods divide the day, so that the checkers know the due instants without a cron library. */
import { Buffer } from "node:buffer";

export const HOOK_SECRET = "HOOK_SECRET";
export const HOOK_VALUE = "a simulated secret";
export const HOOK = "hook";

/** Expressions with their periods, ms; all due instants are multiples of them in UTC. */
const CRONS = [
  ["*/20 * * * * *", 20_000],
  ["0 * * * * *", 60_000],
  ["0 */5 * * * *", 300_000],
  ["0 0 * * * *", 3_600_000],
] as const;
const ZONE = "UTC";

/** By the text under which the store keeps a trigger's schedule. */
export const PERIODS: ReadonlyMap<string, number> = new Map(
  CRONS.map(([expression, period]) => [`${expression} ${ZONE}`, period]),
);

/** Slugs of all cron triggers that a manifest may have. */
export const CRON_SLUGS = ["tick", "tock"] as const;

const cronTrigger = (slug: string, how: number): string => {
  const [expression] = CRONS[how % CRONS.length] ?? CRONS[0];
  return `
[[triggers]]
slug = "${slug}"
type = "cron"
cron = "${expression}"
timezone = "${ZONE}"
enabled = ${how % 7 !== 6}
prompt = "due {{ cron.fired_at }}, before {{ cron.last_fired_at }}"
`;
};

const HOOK_TRIGGER = `
[[triggers]]
slug = "${HOOK}"
type = "webhook"
secret_env = "${HOOK_SECRET}"
prompt = "look at {{ body.n }}"
`;

/** Of some manifests alone: a delivery may be filtered, and come again when it would not be. */
const HOOK_FILTER = `
[webhooks.${HOOK}]
if = { "body.wanted" = true }
`;

/** One of many manifests; some lack triggers or a filter, some do not parse. */
export const manifestOf = (how: number): string => {
  if (how % 13 === 12) return "[[triggers]\n";
  const tick = how % 5 === 4 ? "" : cronTrigger("tick", how >> 3);
  const tock = how % 3 === 0 ? cronTrigger("tock", how >> 5) : "";
  return HOOK_TRIGGER + (how % 2 === 0 ? HOOK_FILTER : "") + tick + tock;
};

/** The same where sandboxes wait: projects keep none, one or two ready. */
export const warmManifestOf = (how: number): string =>
  `${manifestOf(how)}\n[environment]\nwarm = ${(how >> 2) % 3}\n`;

/** Two of three pass the filter. */
export const bodyOf = (n: number): Uint8Array => Buffer.from(JSON.stringify({ n, wanted: n % 3 !== 1 }));
