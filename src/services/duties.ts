/**
 * Every background duty of the service. A duty looks at the world on a timer and at a signal, and takes no input. `runDuty`
 * (duty.ts) runs it by its name here, so a duty without a row does not compile. `platform doctor --tree` prints this table, and
 * `/metrics` shows the last run of each row.
 */
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** A found idle session is at most this share of the idle timeout late. */
const SWEEP_SHARE = 0.1;

export interface Duty {
  /** The work of one round, in about 35 characters: the tree has 120 columns. */
  readonly about: string;
  /** From the end of a round to the next one, in ms; a function where a setting decides it. */
  readonly periodMs: number | ((settings: never) => number);
  /** What brings the next round early; null: only the timer does. */
  readonly signal: string | null;
  /** Which nodes run it, and over what. */
  readonly owner: "each node" | "actor's node" | "sandbox's node" | "repository's node";
  /** It acts outside the installation: its rounds do nothing while a restored copy is paused (ground/pause.ts). */
  readonly actsOutside?: true;
}

export const DUTIES = {
  nodes: {
    about: "gives a sign of life, notices death",
    periodMs: SECOND,
    signal: null,
    owner: "each node",
  },
  directory: {
    about: "loads projects that changed",
    // A lost signal leaves the directory behind for so long (api.md 4).
    periodMs: SECOND,
    signal: "project changed",
    owner: "each node",
  },
  scheduler: {
    about: "sets the timers of cron triggers",
    periodMs: (settings: { readonly schedulerIntervalMs: number }) => settings.schedulerIntervalMs,
    signal: "project changed, trigger moved",
    owner: "actor's node",
  },
  recovery: {
    about: "finishes what a crash interrupted",
    periodMs: (settings: { readonly recoveryIntervalMs: number }) => settings.recoveryIntervalMs,
    signal: "commit in doubt",
    owner: "each node",
  },
  sweeper: {
    about: "hibernates idle sessions",
    periodMs: (settings: { readonly idleTimeoutMs: number }) =>
      Math.max(Math.min(settings.idleTimeoutMs * SWEEP_SHARE, 30 * SECOND), 100),
    signal: "request waits",
    owner: "sandbox's node",
  },
  people: {
    about: "ends what deactivated people left",
    periodMs: 15 * SECOND,
    signal: null,
    owner: "each node",
  },
  orphans: {
    about: "removes sandboxes without a record",
    // Half of the time within which the sandbox of an ended session is gone (I9).
    periodMs: 15 * SECOND,
    signal: null,
    owner: "sandbox's node",
  },
  secrets: {
    about: "sends changed secrets to sandboxes",
    periodMs: 5 * SECOND,
    signal: "project changed, delivery done",
    owner: "sandbox's node",
  },
  manifests: {
    about: "reads manifests whose branch moved",
    periodMs: (settings: { readonly manifestSyncMs: number }) => settings.manifestSyncMs,
    signal: null,
    owner: "each node",
  },
  change_requests: {
    about: "tells readers of moved branches",
    periodMs: (settings: { readonly manifestSyncMs: number }) => settings.manifestSyncMs,
    signal: "branch moved",
    owner: "each node",
  },
  pull_requests: {
    about: "keeps pull requests in step",
    // Half of the time within which an end at the code host is known here.
    periodMs: 30 * SECOND,
    signal: "change request changed",
    owner: "each node",
    actsOutside: true,
  },
  outbound_webhooks: {
    about: "tells receivers of events",
    // A delivery that is due again is at most this late.
    periodMs: SECOND,
    signal: "event written, request ended",
    owner: "each node",
    actsOutside: true,
  },
  retention: {
    about: "removes rows that are old enough",
    periodMs: MINUTE,
    signal: null,
    owner: "each node",
  },
  spend: {
    about: "counts calls that a crash cut off",
    // A limit counts the reservation until then.
    periodMs: MINUTE,
    signal: null,
    owner: "each node",
  },
  connectors: {
    about: "fetches tools of connectors again",
    periodMs: 10 * MINUTE,
    signal: null,
    owner: "each node",
    actsOutside: true,
  },
  server_sessions: {
    about: "ends unneeded sessions at servers",
    // How long a session at a connector's server outlives a changed connector or credential.
    periodMs: 5 * SECOND,
    signal: "session ended",
    owner: "each node",
  },
  approvals: {
    about: "makes approved calls, tells agents",
    // A lost signal delays an approved call for so long.
    periodMs: 5 * SECOND,
    signal: "event written",
    owner: "each node",
    actsOutside: true,
  },
  deletions: {
    about: "removes deleted projects",
    // How late a project goes whose week is over.
    periodMs: MINUTE,
    signal: null,
    owner: "each node",
  },
  environments: {
    about: "makes room for images of builds",
    periodMs: MINUTE,
    signal: null,
    owner: "each node",
  },
  base_images: {
    about: "looks up tags of base images",
    // How late a tag that is due is looked up. How often is PLATFORM_ENVIRONMENT_BASES_MS.
    periodMs: MINUTE,
    signal: null,
    owner: "each node",
  },
  warm_pool: {
    about: "keeps sandboxes ready for sessions",
    periodMs: 5 * SECOND,
    signal: "wish, project changed",
    owner: "each node",
  },
  unclaimed: {
    about: "removes unclaimed repositories",
    // An unclaimed repository costs disk space and nothing else.
    periodMs: 10 * MINUTE,
    signal: null,
    owner: "repository's node",
  },
  saves: {
    about: "collects replaced saved work",
    // How soon a collection is tried again that a save under way put off, and how late an unused view goes.
    periodMs: 10 * MINUTE,
    signal: null,
    owner: "repository's node",
  },
  webhook_record: {
    about: "writes down refused webhooks",
    periodMs: SECOND,
    signal: null,
    owner: "each node",
  },
  transition_record: {
    about: "writes history of triggers, queue",
    periodMs: SECOND,
    signal: null,
    owner: "each node",
  },
  webhook_bodies: {
    about: "refuses bodies that come too slowly",
    periodMs: SECOND,
    signal: null,
    owner: "each node",
  },
  open_connections: {
    about: "cuts connections without a right",
    // With a lost signal, they still end within a second (openings.ts).
    periodMs: SECOND / 2,
    signal: "token or session ended",
    owner: "each node",
  },
  expiring_tokens: {
    about: "cuts connections of expired tokens",
    periodMs: 60 * MINUTE,
    signal: "token expired",
    owner: "each node",
  },
} as const satisfies Readonly<Record<string, Duty>>;

export type DutyName = keyof typeof DUTIES;

export const DUTY_NAMES = Object.keys(DUTIES) as readonly DutyName[];

/** The settings that decide how often a duty runs, ms. */
export interface DutySettings {
  readonly schedulerIntervalMs: number;
  readonly recoveryIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly manifestSyncMs: number;
}

/** How often each duty runs, ms. */
export const dutyPeriods = (settings: DutySettings): ReadonlyMap<DutyName, number> =>
  new Map(
    DUTY_NAMES.map((name) => {
      const { periodMs } = DUTIES[name];
      return [name, typeof periodMs === "function" ? periodMs(settings) : periodMs];
    }),
  );
