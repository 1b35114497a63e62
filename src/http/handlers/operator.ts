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
import { Operations } from "../../store/ports/operations.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Transitions, type ActorTransition } from "../../store/ports/transitions.ts";
import { Caller } from "../api/access.ts";
import { Conflict } from "../api/errors.ts";
import { ThisNode } from "../limits.ts";
import { requireOperatorAccount } from "../callers/operator-account.ts";
import { withApiErrors } from "../steps/answers.ts";
import { findProblems } from "../../services/problems.ts";
import { wireForm } from "../steps/wire.ts";
import { DoctorWire, OperatorGroup, ServiceWire } from "../api/operator.ts";
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

const serviceForm = wireForm(ServiceWire);
const doctorForm = wireForm(DoctorWire);

/** Each actor's newest transition, the newest first. @param rows oldest first */
const newestOfEach = (rows: readonly ActorTransition[]): readonly ActorTransition[] => {
  const newest = new Map<string, ActorTransition>();
  for (const row of rows.toReversed()) {
    const key = `${row.actor.kind}/${row.actor.id}`;
    if (!newest.has(key)) newest.set(key, row);
  }
  return [...newest.values()].slice(0, ACTORS_SHOWN);
};

const showActor = ({ actor, to, event, commands, at }: ActorTransition) => ({
  ...actor,
  state: to,
  event,
  commands,
  at,
});

const duties = Effect.gen(function* () {
  const runs = yield* DutyRuns;
  const { periods } = yield* ThisNode;
  return DUTY_NAMES.map((name) => {
    const last = runs.lastRun(name);
    return {
      name,
      about: DUTIES[name].about,
      periodMs: periods.get(name) ?? 0,
      last,
      lastRunAt: last?.endedAt ?? null,
      tookMs: last?.tookMs ?? null,
      failed: last?.failed ?? false,
      failures: runs.failures(name),
    };
  });
});

/** Everything that is read, at one instant. */
const read = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis;
  const operations = yield* Operations;
  const sandboxes = yield* operations.sandboxesByNode;
  return {
    now,
    database: yield* operations.database,
    nodes: yield* (yield* Nodes).all,
    countSandboxes: (nodeId: string) => sandboxes.get(nodeId) ?? 0,
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
  const state = yield* read;
  const { database, scheduler, boots } = state;
  const { name, summary } = yield* SandboxProvider;
  const { last } = yield* Examined;
  return serviceForm({
    version: (yield* ThisNode).version,
    runtimeVersion: process.versions.node,
    nodeId: (yield* ThisNode).id,
    startedAt: state.now - Math.round(process.uptime() * 1000),
    problems: findProblems(state),
    database,
    nodes: state.nodes.map((node) => ({ ...node, sandboxes: state.countSandboxes(node.id) })),
    scheduler,
    queues: { fires: state.fires, commands: state.commands },
    ownerlessSessions: state.ownerless,
    staleManifests: state.stale,
    sandboxes: {
      provider: name,
      summary,
      ...(yield* BootPlaces).state(),
      doctor: last && { at: last.at, ...last.report },
    },
    boots: { since: state.now - BOOTS_MS, ...boots },
    actors: newestOfEach(state.moved).map(showActor),
    duties: state.duties,
  });
});

/** Starts one real sandbox, probes it and removes it. */
const examine = Effect.gen(function* () {
  yield* requireOperatorAccount(yield* Caller);
  const examination = yield* Examined;
  const { doctor } = yield* SandboxProvider;
  if (examination.isRunning)
    return yield* new Conflict({
      error: "An examination is running. Try again in a moment.",
      code: "examination_running",
    });
  examination.isRunning = true;
  const report = yield* Effect.ensuring(
    doctor,
    Effect.sync(() => {
      examination.isRunning = false;
    }),
  );
  const at = yield* Clock.currentTimeMillis;
  examination.last = { at, report };
  return doctorForm({ at, ...report });
});

/** Every node notices within a second. */
const resume = Effect.gen(function* () {
  yield* requireOperatorAccount(yield* Caller);
  return { was_paused: yield* endPause };
});

export const operatorHandlers = HttpApiBuilder.group(Platform.add(OperatorGroup), "operator", (handlers) =>
  handlers
    .handle("show", () => withApiErrors(show))
    .handle("examine", () => withApiErrors(examine))
    .handle("resume", () => withApiErrors(resume)),
);
