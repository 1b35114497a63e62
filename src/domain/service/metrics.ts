/**
 * Every metric of the service (docs/operate/monitoring.md): its name, what it says, its labels, and how many values of a
 * label are told apart. Names are without the prefix `platform_`.
 *
 *  N1 A label is never an id, and never free text: its values are the service's own words, or are counted (`SEEN_MAX`).
 *  N2 The number of series has a limit, whatever callers, agents and models are called: `SERIES_MAX`.
 */

import { ADVICE } from "../session/failure.ts";
import { PACKAGE_KINDS } from "../environment/packages.ts";
import { PROVIDERS } from "../person/sign-in.ts";

/** Limits of buckets, in seconds: for answers, for work of a machine, and for work of an agent. */
const ANSWER = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
const WORK = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300] as const;
const LATE = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600] as const;
const AGENT = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400] as const;

/** How many values of a label are told apart. Each further value counts as `OTHER`. */
export const SEEN_MAX = {
  answer: 40,
  code: 40,
  kind: 12,
  limit: 16,
  /** Agents name models. A hostile one could name many. */
  model: 50,
  operation: 24,
  outcome: 16,
  provider: 4,
  /** The patterns of http/routes.ts and `OTHER`. A test compares them. */
  route: 240,
  state: 8,
  status: 8,
  step: 12,
} as const;
export type LabelName = keyof typeof SEEN_MAX;

/** Stands for values beyond a label's number, and for values that no label may have. */
export const OTHER = "other";

/** The daemon's steps of a boot that are measured. */
export const DAEMON_STEPS = [
  "listening",
  "runtime_started",
  "credential",
  "cloned",
  "runtime_ready",
  "ready",
] as const;

const FAILURE_CODES = Object.keys(ADVICE).map((code) => [code]);

interface Defined {
  readonly about: string;
  readonly labels: readonly LabelName[];
  /** Series that exist from the start, so that the first event is an increase. In the order of `labels`. */
  readonly first?: readonly (readonly string[])[];
}
interface HistogramDefined extends Defined {
  readonly buckets: readonly number[];
}

const define = <const Metrics extends Readonly<Record<string, Defined>>>(metrics: Metrics) => metrics;
const defineHistograms = <const Metrics extends Readonly<Record<string, HistogramDefined>>>(
  metrics: Metrics,
) => metrics;

/** The route of webhooks, which has alerts of its own. */
export const WEBHOOK_ROUTE = "POST /v1/webhooks/projects/:pid/:slug";

/** In seconds. */
export const HISTOGRAMS = defineHistograms({
  http_request_seconds: {
    about: "Time from a request to the end of its answer, by route and class of status. A stream ends late.",
    labels: ["route", "status"],
    buckets: ANSWER,
    first: [
      [WEBHOOK_ROUTE, "2xx"],
      [WEBHOOK_ROUTE, "5xx"],
    ],
  },
  admission_seconds: {
    about: "Time from a wish for a session to the commit of its decision, by outcome.",
    labels: ["outcome"],
    buckets: ANSWER,
    first: [["admitted"], ["queued"]],
  },
  boot_seconds: {
    about: "Time from a sandbox's place to boot to the end of its boot: ready or failed.",
    labels: ["outcome"],
    buckets: WORK,
    first: [["ready"], ["failed"]],
  },
  boot_step_seconds: {
    about:
      "Time of each step of a boot: waiting for a place, creating the sandbox, and the daemon's steps since it began.",
    labels: ["step"],
    buckets: WORK,
    first: ["place", "created", ...DAEMON_STEPS].map((step) => [step]),
  },
  cron_lateness_seconds: {
    about: "Time from a due instant of a cron trigger to the commit of its fire.",
    labels: [],
    buckets: LATE,
    first: [[]],
  },
  git_seconds: {
    about: "Time of the service's own operations on repositories, by operation and outcome.",
    labels: ["operation", "outcome"],
    buckets: WORK,
    first: [["create_branch", "ok"]],
  },
  turn_seconds: {
    about: "Time of an agent's turns, without those that this process saw only in part.",
    labels: [],
    buckets: AGENT,
    first: [[]],
  },
  tool_call_seconds: {
    about: "Time of an agent's tool calls by the sandbox's clock, by kind of tool and outcome.",
    labels: ["kind", "outcome"],
    buckets: AGENT,
    first: [["execute", "completed"]],
  },
  delivery_seconds: {
    about: "Time of requests to receivers of outbound webhooks, by outcome.",
    labels: ["outcome"],
    buckets: ANSWER,
    first: [["delivered"], ["refused"], ["no_answer"]],
  },
});
export type HistogramName = keyof typeof HISTOGRAMS;

/** Since the process began. */
export const COUNTERS = define({
  session_failures_total: { about: "Sessions that failed, by code.", labels: ["code"], first: FAILURE_CODES },
  warm_claims_total: {
    about: "Sessions that found a waiting sandbox, by what became of it.",
    labels: ["outcome"],
    first: [["claimed"], ["ended"], ["outdated"]],
  },
  turns_total: {
    about: "Turns that ended, by state.",
    labels: ["state"],
    first: [["completed"], ["failed"], ["interrupted"]],
  },
  limits_hit_total: {
    about: "Requests, fires and calls that met a limit, by limit.",
    labels: ["limit"],
    first: [["session_cap"], ["queue_full"], ["requests_at_once"], ["webhook_bodies"]],
  },
  webhooks_total: {
    about: "Webhook deliveries, by class of status and answer.",
    labels: ["status", "answer"],
    first: [
      ["2xx", "fired"],
      ["5xx", "internal_error"],
    ],
  },
  sign_ins_total: {
    about: "Sign-ins at a provider, by provider and outcome.",
    labels: ["provider", "outcome"],
    first: PROVIDERS.map((provider) => [provider, "signed_in"]),
  },
  model_tokens_total: {
    about: "Tokens that agents used, by model and kind.",
    labels: ["model", "kind"],
    first: [[OTHER, "input"]],
  },
  model_cost_usd_total: {
    about: "Cost of the models that agents used, in US dollars.",
    labels: ["model"],
    first: [[OTHER]],
  },
  package_requests_total: {
    about: "Requests of sandboxes to package registries, by registry and outcome.",
    labels: ["kind", "outcome"],
    first: PACKAGE_KINDS.flatMap((kind) => [
      [kind, "hit"],
      [kind, "miss"],
      [kind, "failed"],
    ]),
  },
  package_bytes_total: {
    about: "Bytes of package files that sandboxes got, by registry and where they came from.",
    labels: ["kind", "outcome"],
    first: PACKAGE_KINDS.flatMap((kind) => [
      [kind, "from_cache"],
      [kind, "from_registry"],
    ]),
  },
  saves_incomplete_total: {
    about: "Saves of work that lacked something, by reason. One with several reasons counts for each.",
    labels: ["code"],
    first: [["failed"], ["limit"], ["no_room_on_node"]],
  },
  spans_dropped_total: {
    about: "Spans that the collector did not take.",
    labels: [],
    first: [[]],
  },
  metrics_refresh_failures_total: {
    about: "Scrapes whose figures from the database are old, because it did not answer.",
    labels: [],
    first: [[]],
  },
});
export type CounterName = keyof typeof COUNTERS;

export const GAUGES = define({
  oldest_fire_age_seconds: { about: "Age of the oldest fire that waits for a slot, or 0.", labels: [] },
  oldest_command_age_seconds: {
    about: "Age of the oldest command that no actor has performed, or 0. Watching a sandbox does not count.",
    labels: [],
  },
  oldest_delivery_age_seconds: { about: "Age of the oldest outbound delivery that waits, or 0.", labels: [] },
  oldest_request_age_seconds: {
    about: "Age of the oldest request of an agent to a person, or 0.",
    labels: [],
  },
  sessions: { about: "Sessions that have a slot, by status.", labels: ["status"] },
  database_up: { about: "1 if the database answered the last look, else 0.", labels: [] },
  database_waiting: {
    about: "Statements and transactions of this node that wait for a connection to the database.",
    labels: [],
  },
  sandbox_memory_bytes: { about: "Memory of all sandboxes on this node.", labels: [], first: [[]] },
  package_cache_bytes: { about: "Package files on this node's disk.", labels: [], first: [[]] },
  saves_bytes: { about: "Saved work on this node's disk.", labels: [], first: [[]] },
  sessions_unsaved: {
    about: "Idle sessions that keep their slot because their work cannot be saved.",
    labels: [],
  },
  warm_sandboxes: {
    about: "Sandboxes that wait for a session on this node and are ready.",
    labels: [],
    first: [[]],
  },
  sandboxes_booting: { about: "Sandboxes that boot on this node.", labels: [] },
  sandboxes_waiting: { about: "Sandboxes that wait on this node to boot.", labels: [] },
  scheduler_late: { about: "1 if the scheduler has not run for two intervals, else 0.", labels: [] },
  data_disk_free_bytes: {
    about: "Free bytes on the data directory's disk. 0 also if it takes no files.",
    labels: [],
  },
  duties_failed: {
    about: "Background duties whose last round crashed, in whole or in part.",
    labels: [],
  },
  process_memory_bytes: { about: "Resident memory of this process.", labels: [] },
  process_cpu_seconds: { about: "Processor time of this process since it began.", labels: [] },
});
export type GaugeName = keyof typeof GAUGES;

export const METRICS = { ...HISTOGRAMS, ...COUNTERS, ...GAUGES };
export type MetricName = keyof typeof METRICS;

/** The labels of a metric, each with its value. */
export type LabelsOf<Name extends MetricName> = {
  readonly [Label in (typeof METRICS)[Name]["labels"][number]]: string;
};

/** A value that a label may have: the form of codes, routes and names of models. Anything else is `OTHER`. */
const VALUE = /^[A-Za-z0-9][\w .:/*@+-]{0,119}$/;
export const isLabelValue = (text: string): boolean => VALUE.test(text);

/** The largest number of series of a metric, counted as lines of the text format. */
const seriesCount = ({ labels, ...metric }: Defined & { readonly buckets?: readonly number[] }): number =>
  labels.reduce((product, label) => product * (SEEN_MAX[label] + 1), 1) *
  (metric.buckets === undefined ? 1 : metric.buckets.length + 3);

/** The largest number of series of the whole service (N2). */
export const SERIES_MAX = Object.values<Defined>(METRICS).reduce(
  (sum, metric) => sum + seriesCount(metric),
  0,
);

/** The class of a status, such as `2xx`. */
export const statusClass = (status: number): string => `${Math.floor(status / 100)}xx`;
