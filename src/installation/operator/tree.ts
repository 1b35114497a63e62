/**
 * `platform doctor --tree`: what the service supervises, on one screen. Each number comes from the definition that the running
 * service uses, with the settings of this environment. It asks no database and no service.
 */
import * as Effect from "effect/Effect";
import type { Environment } from "../../cli/configuration.ts";
import { ACCOUNT_LIMITS } from "../../actors/account.ts";
import { CONVERSATION_LIMITS } from "../../actors/conversation.ts";
import { CHANGE_REQUEST_LIMITS } from "../../features/change-requests/actor.ts";
import type { ActorKind } from "../../services/actors.ts";
import { MOVES_POLL_MS, SHARDS, TAKEOVER } from "../../actors/cluster.ts";
import type { ActorLimits } from "../../actors/host.ts";
import { ENVIRONMENT_BUILD_LIMITS } from "../../features/environments/environment-build-actor.ts";
import { SANDBOX_LIMITS } from "../../actors/sandbox.ts";
import { SESSION_LIMITS } from "../../actors/session.ts";
import { CRASH_PAUSES } from "../../actors/supervisor.ts";
import { OUTAGE_PAUSES } from "../../store/ports/outage.ts";
import type { Pauses } from "../../ground/backoff.ts";
import { LONGEST_SLEEP_MS, TELL_PAUSES } from "../../actors/timers.ts";
import { TRIGGER_LIMITS } from "../../actors/trigger.ts";
import { readConfig, type Config } from "../../settings/config.ts";
import { DUTIES, type Duty } from "../../services/duties.ts";
import { CHECK_MS, DRAIN_MS, HEADERS_TIMEOUT_MS } from "../../http/server.ts";
import {
  AGENT_RUNTIME_LIMITS,
  BACKOFF_MAX_MS,
  BACKOFF_MIN_MS,
  CRASH_BUDGET,
  CRASH_WINDOW_MS,
} from "../../machines/agent-runtime.ts";
import { WATCH_INTERVAL_MS } from "../../sandbox/machine/provider.ts";
import { DEFAULTS } from "../../store/postgres/connection/connection.ts";
import { SHARED_STATEMENT_MS } from "../../store/postgres/connection/pool.ts";
import { LISTEN_AGAIN_MS, NOTIFY_PAUSE_MS } from "../../store/postgres/connection/signals.ts";
import { RESTART_AFTER_MS, START_TRIES } from "../../store/postgres/embedded/embedded.ts";
import { quantity } from "../../domain/counted.ts";

/** Something that is supervised, and what it supervises itself. */
export interface Child {
  readonly name: string;
  /** Columns beside the name: siblings line up. */
  readonly cells: readonly string[];
  readonly children: readonly Child[];
}

/** A kind of actor without its numbers is a type error. */
const ACTORS: Readonly<Record<ActorKind, ActorLimits>> = {
  session: SESSION_LIMITS,
  sandbox: SANDBOX_LIMITS,
  account: ACCOUNT_LIMITS,
  trigger: TRIGGER_LIMITS,
  changeRequest: CHANGE_REQUEST_LIMITS,
  conversation: CONVERSATION_LIMITS,
  environmentBuild: ENVIRONMENT_BUILD_LIMITS,
};

const UNITS = [
  [24 * 60 * 60 * 1000, "d"],
  [60 * 60 * 1000, "h"],
  [60 * 1000, "min"],
  [1000, "s"],
] as const;

/** In the largest unit in which it is a whole number. */
export const readableMs = (ms: number): string => {
  const [size, unit] = UNITS.find(([unitMs]) => ms >= unitMs && ms % unitMs === 0) ?? [1, "ms"];
  return `${ms / size} ${unit}`;
};

const leaf = (name: string, ...cells: readonly string[]): Child => ({ name, cells, children: [] });

const pauses = ({ firstMs, longestMs }: Pauses): string =>
  `${readableMs(firstMs)} doubling to ${readableMs(longestMs)}`;
const budget = ({ restarts }: Pick<ActorLimits, "restarts">): string =>
  `${quantity(restarts.restarts, "crash", "crashes")} in ${readableMs(restarts.withinMs)}`;

const actors = (config: Config): Child => ({
  name: "actors",
  cells: [],
  children: [
    ...Object.entries(ACTORS).map(([kind, limits]) =>
      leaf(
        kind,
        `mailbox ${limits.mailbox}`,
        `a command survives ${budget(limits)}`,
        `idle ${readableMs(config.actorIdleMs)}, then out of memory`,
      ),
    ),
    {
      name: "runtime",
      cells: ["cluster entities"],
      children: [
        leaf("a command that crashed", `again after ${pauses(CRASH_PAUSES)}`),
        leaf("a database outage", `waited out, asked again after ${pauses(OUTAGE_PAUSES)}`),
        leaf("placement", `${SHARDS} shards, looked at every ${readableMs(MOVES_POLL_MS)}`),
        leaf(
          "takeover by another node",
          `locks expire after ${readableMs(TAKEOVER.shardLockExpiration)}, ` +
            `renewed every ${readableMs(TAKEOVER.shardLockRefreshInterval)}`,
        ),
      ],
    },
    leaf(
      "cron timers",
      "one heap",
      `longest sleep ${readableMs(LONGEST_SLEEP_MS)}`,
      `told again after ${pauses(TELL_PAUSES)}`,
    ),
  ],
});

/** The period that a duty has with these settings, in ms. */
const dutyPeriod = (duty: Duty, config: Config): number => {
  const { periodMs } = duty as Omit<Duty, "periodMs"> & {
    readonly periodMs: number | ((settings: Config) => number);
  };
  return typeof periodMs === "number" ? periodMs : periodMs(config);
};

const duties = (config: Config): Child => ({
  name: "background duties",
  cells: ["name, period, what brings it early, where, what it does"],
  children: Object.entries(DUTIES).map(([name, duty]) =>
    leaf(name, readableMs(dutyPeriod(duty, config)), duty.signal ?? "-", duty.owner, duty.about),
  ),
});

const http = (config: Config): Child => ({
  name: "HTTP",
  cells: [],
  children: [
    leaf("listener", `${config.host}:${config.port}`, `${readableMs(DRAIN_MS)} to drain at the end`),
    leaf("API requests", `${config.requestsAtOnce} at once`, "more are answered 503"),
    leaf("slow headers", `${readableMs(HEADERS_TIMEOUT_MS)}`, `looked for every ${readableMs(CHECK_MS)}`),
  ],
});

const database = (config: Config): Child => ({
  name: "database",
  cells: [],
  children: [
    config.databaseUrl === null
      ? leaf(
          "embedded Postgres",
          `started again ${readableMs(RESTART_AFTER_MS)} after it ends`,
          `a failed start: ${START_TRIES.again} more tries, ${readableMs(START_TRIES.afterMs)} apart`,
        )
      : leaf("DATABASE_URL", "supervised by its own operator"),
    leaf(
      "pool",
      `${DEFAULTS.maxConnections} connections`,
      `${readableMs(DEFAULTS.statementTimeoutMs)} a statement`,
    ),
    leaf("shared connection", "short reads", `${readableMs(SHARED_STATEMENT_MS)} a statement`),
    leaf(
      "listener",
      `connects again after ${readableMs(LISTEN_AGAIN_MS)}`,
      `a NOTIFY at most every ${readableMs(NOTIFY_PAUSE_MS)}`,
    ),
  ],
});

const sandboxes = (config: Config): Child => ({
  name: "sandboxes",
  cells: [],
  children: [
    leaf("boots", `${config.bootsAtOnce} at once`, `${readableMs(config.bootTimeoutMs)} each`),
    ...(config.sandboxProvider === "simulated"
      ? []
      : [leaf("watch", `looks for ended ones every ${readableMs(WATCH_INTERVAL_MS)}`)]),
    {
      name: "daemon, in each sandbox",
      cells: [],
      children: [
        leaf(
          "agent runtime",
          `mailbox ${AGENT_RUNTIME_LIMITS.mailbox}`,
          `a command survives ${budget(AGENT_RUNTIME_LIMITS)}`,
        ),
        leaf(
          "its process",
          `again after ${pauses({ firstMs: BACKOFF_MIN_MS, longestMs: BACKOFF_MAX_MS })}`,
          `fails at crash ${CRASH_BUDGET} in ${readableMs(CRASH_WINDOW_MS)}`,
        ),
      ],
    },
  ],
});

/** Settings that are refused are a defect, which `perform` explains. */
export const supervisionTree = (environment: Environment): Effect.Effect<Child> =>
  Effect.sync(() => {
    const config = readConfig(environment, process.cwd());
    const children = [actors(config), duties(config), http(config), database(config), sandboxes(config)];
    return { name: "service", cells: [], children };
  });

/** Siblings' columns line up; the last one has no padding. */
const rows = (children: readonly Child[]): readonly string[] => {
  const columnWidth = (column: number) =>
    Math.max(
      ...children
        .filter(({ cells }) => cells.length > 0)
        .map(({ name, cells }) => [name, ...cells][column]?.length ?? 0),
      0,
    );
  return children.map(({ name, cells }) =>
    [name, ...cells]
      .map((text, column, all) => (column === all.length - 1 ? text : text.padEnd(columnWidth(column))))
      .join("  "),
  );
};

const linesUnder = (children: readonly Child[], indent: string): readonly string[] => {
  const texts = rows(children);
  return children.flatMap((child, index) => {
    const isLast = index === children.length - 1;
    return [
      `${indent}${isLast ? "└─" : "├─"} ${texts[index] ?? ""}`,
      ...linesUnder(child.children, `${indent}${isLast ? "   " : "│  "}`),
    ];
  });
};

/** For a person: one line each. */
export const treeText = (root: Child): string => [root.name, ...linesUnder(root.children, "")].join("\n");
