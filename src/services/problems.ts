/** The problems of the service, each with its remedy: a pure function of the read state. */
import type { DoctorReport } from "../sandbox/port.ts";
import type { NodeRecord } from "../store/ports/nodes.ts";
import type { Backlog, Boots, DatabaseFacts } from "../store/ports/operations.ts";
import { quantity } from "../domain/counted.ts";

const MINUTE = 60_000;
/** An actor performs a command at once. One that waits for so long is stuck. */
const COMMAND_LATE_MS = 5 * MINUTE;
const FIRE_LATE_MS = 10 * MINUTE;
/** The share of the server's connections from which on others may get none. */
const CONNECTIONS_SHARE = 0.9;
/** A round that is this many periods late, and at least a minute. */
const DUTY_LATE_PERIODS = 3;
/** The share of boots that fail, from which on something general is wrong; of at least so many boots. */
const FAILED_SHARE = 0.2;
const BOOTS_MIN = 5;

/** Git, Postgres and each save of a session's work need some. */
const DISK_FREE_MIN_BYTES = 1024 ** 3;

export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

export interface DutyState {
  readonly name: string;
  readonly periodMs: number;
  /** Its last round in this process. Null before the first. */
  readonly last: { readonly endedAt: number; readonly failed: boolean } | null;
}

export interface ServiceFacts {
  readonly now: number;
  readonly database: DatabaseFacts;
  readonly nodes: readonly NodeRecord[];
  readonly countSandboxes: (nodeId: string) => number;
  readonly scheduler: { readonly late: boolean };
  readonly fires: Backlog;
  readonly commands: Backlog;
  readonly ownerless: number;
  readonly stale: number;
  readonly doctor: DoctorReport | null;
  readonly boots: Boots;
  readonly duties: readonly DutyState[];
  /** Of this node's data directory. Null if unknown. */
  readonly diskFreeBytes: number | null;
}

const minutes = (ms: number): string => {
  const count = Math.round(ms / MINUTE);
  if (count === 0) return "less than a minute";
  return quantity(count, "minute");
};

const hadSandboxes = (count: number): string =>
  count === 0 ? "" : ` It had ${quantity(count, "sandbox", "sandboxes")}.`;

/** How late the oldest of a backlog is, or 0 if it is in time. */
const lateness = ({ oldestAt }: Backlog, now: number, allowedMs: number): number =>
  oldestAt !== null && now - oldestAt > allowedMs ? now - oldestAt : 0;

const ofSandboxes = ({ doctor, boots }: ServiceFacts): readonly (Problem | false)[] => {
  const failureCount = boots.failures.reduce((sum, { count }) => sum + count, 0);
  const [most] = boots.failures;
  return [
    doctor?.usable === false && {
      code: "sandboxes_unusable",
      message: `No sandbox starts on this node. ${doctor.problem ?? ""}`.trim(),
      remedy: "Fix the problem that the message names, then examine the sandboxes again.",
    },
    boots.started >= BOOTS_MIN &&
      failureCount / boots.started >= FAILED_SHARE && {
        code: "boots_fail",
        message: `${failureCount} of ${quantity(boots.started, "boot")} failed, most often with ${most?.code ?? "no code"}.`,
        remedy: "Open a failed session and read its log. Examine the sandboxes.",
      },
  ];
};

const ofDatabase = ({ database, commands, ownerless, now }: ServiceFacts): readonly (Problem | false)[] => {
  const late = lateness(commands, now, COMMAND_LATE_MS);
  return [
    database.connections > database.connectionsMax * CONNECTIONS_SHARE && {
      code: "connections_scarce",
      message: `${database.connections} of ${database.connectionsMax} database connections are in use.`,
      remedy: "Raise max_connections of the database, or end other programs that use it.",
    },
    late > 0 && {
      code: "commands_late",
      message: `The oldest of ${quantity(commands.waiting, "command")} has waited for ${minutes(late)}.`,
      remedy: "Look in the log for the session's actor. Restart the node if recovery does not run.",
    },
    ownerless > 0 && {
      code: "sessions_ownerless",
      message: `No part of the service works on ${quantity(ownerless, "live session")}.`,
      remedy: "Recovery ends them within its interval. If they stay, look at recovery below and in the log.",
    },
  ];
};

const ofDuties = ({ duties, now }: ServiceFacts): readonly (Problem | false)[] =>
  duties.map(({ name, periodMs, last }) => {
    if (last?.failed === true)
      return {
        code: "duty_failed",
        message: `The last round of ${name} crashed.`,
        remedy: `Look in the log for work=${name}. The next round comes as usual.`,
      };
    const lateAfterMs = Math.max(periodMs * DUTY_LATE_PERIODS, MINUTE);
    return (
      last !== null &&
      now - last.endedAt > lateAfterMs && {
        code: "duty_late",
        message: `${name} last ran ${minutes(now - last.endedAt)} ago.`,
        remedy: "The database may be slow or away. Restart the node if this does not end.",
      }
    );
  });

/** Most urgent first. */
export const findProblems = (state: ServiceFacts): readonly Problem[] => {
  const { nodes, countSandboxes, scheduler, fires, stale, diskFreeBytes, now } = state;
  const waitMs = lateness(fires, now, FIRE_LATE_MS);
  return [
    ...ofSandboxes(state),
    diskFreeBytes !== null &&
      diskFreeBytes < DISK_FREE_MIN_BYTES && {
        code: "disk_scarce",
        message:
          diskFreeBytes === 0
            ? "The disk of this node's data directory takes no files: it is full, has no inodes left or is read-only."
            : `The disk of this node's data directory has ${Math.floor(diskFreeBytes / 1024 ** 2)} MiB left.`,
        remedy:
          "Free some space, at least 5 GiB. While the disk is full, nothing can be stored, and sessions cannot push.",
      },
    ...nodes.map(
      ({ id, deadAt }) =>
        deadAt !== null && {
          code: "node_dead",
          message: `Node ${id} has been silent for ${minutes(now - deadAt)}.${hadSandboxes(countSandboxes(id))}`,
          remedy:
            "Start the service on that machine again. Its sessions have failed. Those whose saved work it has wait for it; the others can be restarted.",
        },
    ),
    scheduler.late && {
      code: "scheduler_late",
      message: "The scheduler has not run for two intervals, so cron triggers may be late.",
      remedy: "Look in the log for the scheduler, and at the load of the machine and its database.",
    },
    ...ofDatabase(state),
    ...ofDuties(state),
    waitMs > 0 && {
      code: "fires_wait",
      message: `The oldest of ${quantity(fires.waiting, "queued run")} has waited for ${minutes(waitMs)}.`,
      remedy: "Stop sessions that are not needed, or raise the account's tier with `platform admin tier`.",
    },
    stale > 0 && {
      code: "manifests_stale",
      message: `${quantity(stale, "active project has", "active projects have")} a platform.toml that cannot be read.`,
      remedy: "The project's page names the line. Its triggers run from the last good version.",
    },
  ].filter((problem): problem is Problem => problem !== false);
};
