/** Handlers of api/operator.ts: the service itself, for its operator. */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { DUTIES, DUTY_NAMES } from "../../services/duties.ts";
import { DutyRuns } from "../../services/duty.ts";
import { Scheduler } from "../../duties/scheduler.ts";
import { SandboxProvider, type DoctorReport } from "../../sandbox/port.ts";
import { BootPlaces } from "../../services/sessions/boot-places.ts";
import { Directory } from "../../services/directory.ts";
import { endPause } from "../../services/pausing.ts";
import { Nodes } from "../../store/ports/nodes.ts";
import { Operations, type Backlog, type Spread } from "../../store/ports/operations.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Transitions, type ActorTransition } from "../../store/ports/transitions.ts";
import { Caller } from "../api/access.ts";
import { Conflict } from "../api/errors.ts";
import { ThisNode } from "../limits.ts";
import { requireOperatorAccount } from "../callers/operator-account.ts";
import { answering } from "../steps/answers.ts";
import { findProblems } from "../../services/problems.ts";
import { instant, instantOrNull } from "../steps/wire.ts";
import { OperatorGroup } from "../api/operator.ts";
import { Platform } from "../api/platform.ts";

/** Boots are counted over this time. */
const BOOTS_MS = 24 * 60 * 60 * 1000;

/** Actors that moved within this time are shown, ms, and how many of them. */
const ACTORS_MS = 60 * 60 * 1000;
const ACTORS_SHOWN = 50;
/** Of how many transitions the newest of each actor is taken. */
const TRANSITIONS_READ = 1000;

/** The last examination of this node's sandboxes, in this process's memory. One runs at a time. */
class Examination {
  last: { readonly at: number; readonly report: DoctorReport } | null = null;
  isRunning = false;
}
const Examined = Context.Reference<Examination>("platform/http/Examined", {
  defaultValue: () => new Examination(),
});

const doctorWire = ({ at, report }: NonNullable<Examination["last"]>) => ({
  at: instant(at),
  provider: report.provider,
  usable: report.usable,
  problem: report.problem,
  findings: report.findings,
});

const backlogWire = ({ waiting, oldestAt }: Backlog) => ({ waiting, oldest_at: instantOrNull(oldestAt) });

const spreadWire = (spread: Spread | null) =>
  spread === null ? null : { count: spread.count, p50_ms: spread.p50Ms, p95_ms: spread.p95Ms };

/** Each actor's newest transition, the newest first. @param rows oldest first */
const newestOfEach = (rows: readonly ActorTransition[]): readonly ActorTransition[] => {
  const newest = new Map<string, ActorTransition>();
  for (const row of rows.toReversed()) {
    const key = `${row.actor.kind}/${row.actor.id}`;
    if (!newest.has(key)) newest.set(key, row);
  }
  return [...newest.values()].slice(0, ACTORS_SHOWN);
};

const actorWire = ({ actor, to, event, commands, at }: ActorTransition) => ({
  ...actor,
  state: to,
  event,
  commands,
  at: instant(at),
});

const duties = Effect.gen(function* () {
  const runs = yield* DutyRuns;
  const { periods } = yield* ThisNode;
  return DUTY_NAMES.map((name) => ({
    name,
    about: DUTIES[name].about,
    periodMs: periods.get(name) ?? 0,
    last: runs.lastRun(name),
    failures: runs.failures(name),
  }));
});

/** Everything that is read, at one instant. */
const read = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis;
  const operations = yield* Operations;
  const held = yield* operations.sandboxesByNode;
  return {
    now,
    database: yield* operations.database,
    nodes: yield* (yield* Nodes).all,
    countSandboxes: (nodeId: string) => held.get(nodeId) ?? 0,
    scheduler: yield* (yield* Scheduler).state,
    ...(yield* operations.backlogs),
    ownerless: (yield* (yield* Sessions).ownerless).length,
    stale: [...(yield* Directory).all()].filter(
      ({ project, manifest }) => project.status === "active" && manifest.stale,
    ).length,
    doctor: (yield* Examined).last?.report ?? null,
    boots: yield* operations.boots(now - BOOTS_MS),
    moved: yield* (yield* Transitions).recent({ since: now - ACTORS_MS, limit: TRANSITIONS_READ }),
    duties: yield* duties,
    diskFreeBytes: yield* (yield* ThisNode).diskFreeBytes,
  };
});

const show = Effect.gen(function* () {
  yield* requireOperatorAccount(yield* Caller);
  const seen = yield* read;
  const { database, scheduler, boots } = seen;
  const { name, summary } = yield* SandboxProvider;
  const { last } = yield* Examined;
  return {
    version: (yield* ThisNode).version,
    runtime_version: process.versions.node,
    node_id: (yield* ThisNode).id,
    started_at: instant(seen.now - Math.round(process.uptime() * 1000)),
    problems: findProblems(seen),
    database: {
      version: database.version,
      size_bytes: database.sizeBytes,
      connections: database.connections,
      connections_max: database.connectionsMax,
    },
    nodes: seen.nodes.map(({ id, url, deadAt }) => ({
      id,
      url,
      dead_at: instantOrNull(deadAt),
      sandboxes: seen.countSandboxes(id),
    })),
    scheduler: {
      ticked_at: instantOrNull(scheduler.tickedAt),
      late: scheduler.late,
      scheduled: scheduler.scheduled,
    },
    queues: { fires: backlogWire(seen.fires), commands: backlogWire(seen.commands) },
    ownerless_sessions: seen.ownerless,
    stale_manifests: seen.stale,
    sandboxes: {
      provider: name,
      summary,
      ...(yield* BootPlaces).state(),
      doctor: last === null ? null : doctorWire(last),
    },
    boots: {
      since: instant(seen.now - BOOTS_MS),
      started: boots.started,
      failures: boots.failures,
      waited: spreadWire(boots.waited),
      booted: spreadWire(boots.booted),
    },
    actors: newestOfEach(seen.moved).map(actorWire),
    duties: seen.duties.map(({ name: duty, about, periodMs, last: run, failures }) => ({
      name: duty,
      about,
      period_ms: periodMs,
      last_run_at: instantOrNull(run?.endedAt ?? null),
      took_ms: run?.tookMs ?? null,
      failed: run?.failed ?? false,
      failures,
    })),
  };
});

/** Starts one real sandbox, probes it and removes it. */
const examine = Effect.gen(function* () {
  yield* requireOperatorAccount(yield* Caller);
  const examined = yield* Examined;
  const { doctor } = yield* SandboxProvider;
  if (examined.isRunning)
    return yield* new Conflict({
      error: "An examination is running. Try again in a moment.",
      code: "examination_running",
    });
  examined.isRunning = true;
  const report = yield* Effect.ensuring(
    doctor,
    Effect.sync(() => {
      examined.isRunning = false;
    }),
  );
  const found = { at: yield* Clock.currentTimeMillis, report };
  examined.last = found;
  return doctorWire(found);
});

/** Every node notices within a second. */
const resume = Effect.gen(function* () {
  yield* requireOperatorAccount(yield* Caller);
  return { was_paused: yield* endPause };
});

export const operatorHandlers = HttpApiBuilder.group(Platform.add(OperatorGroup), "operator", (handlers) =>
  handlers
    .handle("show", () => answering(show))
    .handle("examine", () => answering(examine))
    .handle("resume", () => answering(resume)),
);
