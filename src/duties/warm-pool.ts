/**
 * Keeps sandboxes that wait for a session (services/sessions/warm-pool.ts): as many as the manifest of each project asks for, one for each
 * person who is about to start a session, and one for each project whose cron trigger fires soon.
 *
 *  K1 A row is written before its sandbox is started, and deleted before its sandbox is destroyed. A sandbox without a row is
 *     removed as an orphan (orphans.ts).
 *  K2 Only sandboxes that this process started wait. They end with it. If it is killed, its next life ends them, perhaps in
 *     a new version.
 *  K3 All together have the places of their budget. A person who is about to start a session comes first, then projects that
 *     keep some ready, then triggers. Where there is no place, the oldest one of the last kind goes.
 *  K4 A waiting sandbox that the project would start differently now is replaced. A session does not rely on that: it
 *     compares again (actors/sandboxes/boot.ts).
 *  K5 After a failure, the project waits `PAUSE_MS` before its next try.
 *  K6 A round waits for no build: a project whose image is not ready now has none that waits.
 *  K7 When a trigger fires is known from the timers of this node (actors/schedules.ts). The instant is not stored again.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as FiberMap from "effect/FiberMap";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { specRecipe, type SpecOptions, waitingSpec } from "../actors/sandboxes/spec.ts";
import { nextDue, triggerProject } from "../actors/schedules.ts";
import { waitOutOutage } from "../store/ports/outage.ts";
import { Timers } from "../actors/timers.ts";
import { GitBackend } from "../git/port.ts";
import { CHECKOUT_PACK_BYTES, DaemonClient } from "../sandbox/daemon.ts";
import { SandboxError, SandboxProvider } from "../sandbox/port.ts";
import { answeredInTime, withLink } from "../services/answered.ts";
import type { OfferedRuntimes } from "../domain/runtimes/runtimes.ts";
import { waitsAs } from "../domain/agents/agents.ts";
import { Runtimes } from "../services/projects/runtimes.ts";
import { BootPlaces } from "../services/sessions/boot-places.ts";
import { Directory, type KnownProject } from "../services/directory.ts";
import { newUuid } from "../services/entropy.ts";
import { Environments } from "../services/environments/environments.ts";
import { serviceContext } from "../services/sessions/service-context.ts";
import { WarmPool } from "../services/sessions/warm-pool.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import {
  type NewWarmSandbox,
  type WantedBy,
  type WarmSandbox,
  WarmSandboxes,
} from "../store/ports/sessions/warm-sandboxes.ts";
import { Measures } from "../telemetry/port.ts";
import { DUTIES } from "../services/duties.ts";
import { dutyPart, runDuty } from "../services/duty.ts";

const NAME = "warm_pool";
/** A starting daemon is asked this often whether its runtime answers. */
const READY_POLL = "100 millis";
const PAUSE_MS = 60_000;
const END_WITHIN = "10 seconds";
/** How long before its instant a trigger's sandbox starts. Most starts with a setup command take less. */
export const TRIGGER_LEAD_MS = 2 * 60_000;
/** How long it waits after the instant: the session may have waited in line, or on another node. */
export const TRIGGER_GRACE_MS = 60_000;
/**
 * A trigger that fires more often has none. It would take the memory for more than a tenth of the time, and that is for the
 * project to decide, with `warm` in its manifest.
 */
export const TRIGGER_PERIOD_MS = 10 * TRIGGER_LEAD_MS;
/** How many timers a round looks at. */
const TIMERS_MAX = 1000;
/** To find out how a project would start a sandbox takes some statements, or the whole time of a build. */
const COMPARE_WITHIN = "5 seconds";

export interface WarmPoolDutyOptions extends SpecOptions {
  readonly nodeId: string;
}

const logUnprepared = (sandbox: string) => (error: { readonly message: string }) =>
  Effect.logInfo("a waiting sandbox has no commit of its project", { sandbox, reason: error.message });

/** @returns the functions that start a waiting sandbox, and that say what the project would start now. */
const makeStarting = Effect.fnUntraced(function* (options: WarmPoolDutyOptions) {
  const { nodeId } = options;
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const environments = yield* Environments;
  const projects = yield* Projects;
  const places = yield* BootPlaces;
  const git = yield* GitBackend;
  const sign = yield* serviceContext;
  const warm = yield* WarmSandboxes;
  const makeSpec = yield* waitingSpec(options);

  const specNow = Effect.fnUntraced(function* (id: string, projectId: string) {
    const [state = null] = yield* projects.states([projectId]);
    const environment = yield* environments.forBoot(
      { id, nodeId },
      { projectId, manifest: state?.manifest ?? null },
    );
    return yield* makeSpec(id, projectId, environment);
  });

  const answers = (id: string) =>
    Effect.flatMap(withLink(provider, id), daemon.health).pipe(
      Effect.flatMap(({ runtime }) => (runtime.state === "ready" ? Effect.void : Effect.fail("starting"))),
      Effect.retry(Schedule.spaced(READY_POLL)),
      Effect.orDie,
    );

  /** Gives it the newest commit of the default branch. A session that finds nothing prepared clones. */
  const prepare = (id: string, projectId: string) =>
    Effect.gen(function* () {
      const project = yield* projects.get(projectId);
      if (project === null) return;
      const commit = yield* git.resolveBase({ projectId }, project.defaultBranch);
      const pack = yield* git.pack({ projectId }, { commit, maxBytes: CHECKOUT_PACK_BYTES });
      if (pack === null) return;
      const link = yield* withLink(provider, id);
      yield* daemon.prepare(link, yield* sign(id, id), { commit, pack });
    }).pipe(
      Effect.catchTags({
        GitError: logUnprepared(id),
        SandboxError: logUnprepared(id),
        DaemonUnreachable: logUnprepared(id),
      }),
    );

  /**
   * Fails if it ends, or is not ready within a boot's time. Each part waits out an outage by itself: if all of it were repeated,
   * it would read newer secrets and record them for a sandbox that has the former ones.
   */
  const start = Effect.fnUntraced(function* (id: string, projectId: string) {
    const { spec, given } = yield* waitOutOutage(NAME, specNow(id, projectId));
    const exit = Effect.flatMap(provider.awaitExit(id), ({ message }) =>
      Effect.fail(new SandboxError({ operation: "create", message })),
    );
    const starting = Effect.andThen(provider.create(spec), Effect.raceFirst(answers(id), exit));
    yield* places.boot(
      projectId,
      Effect.timeoutOrElse(starting, {
        duration: options.bootTimeoutMs,
        orElse: () =>
          Effect.fail(new SandboxError({ operation: "create", message: "the agent runtime was not ready" })),
      }),
    );
    yield* waitOutOutage(NAME, prepare(id, projectId));
    yield* waitOutOutage(NAME, warm.ready(id, { recipe: specRecipe(spec), secrets: given }));
  });
  const recipeNow = (id: string, projectId: string) =>
    Effect.map(specNow(id, projectId), ({ spec }) => specRecipe(spec));
  return { start, recipeNow };
});

/** @returns the functions that begin and end a waiting sandbox of this process. */
const makeKeeping = Effect.fnUntraced(function* (options: WarmPoolDutyOptions) {
  const { nodeId } = options;
  const provider = yield* SandboxProvider;
  const warm = yield* WarmSandboxes;
  const { start, recipeNow } = yield* makeStarting(options);
  const underWay = yield* FiberMap.make<string>();
  /** Those that this process started (K2). */
  const mine = new Set<string>();
  /** When a project may try again (K5). */
  const again = new Map<string, number>();

  const destroy = (id: string) =>
    Effect.catch(answeredInTime("destroy", provider.destroy(id)), (error) =>
      Effect.logWarning("a waiting sandbox could not be removed; it is removed as an orphan", {
        sandbox: id,
        error,
      }),
    );
  /** @param stopped ends what still works on it */
  const remove = Effect.fnUntraced(function* (id: string, stop: Effect.Effect<void>) {
    if (!(yield* warm.remove(id))) return;
    mine.delete(id);
    yield* stop;
    yield* destroy(id);
  });
  const drop = (id: string) => remove(id, FiberMap.remove(underWay, id));

  const begin = Effect.fnUntraced(function* (
    projectId: string,
    wish: Pick<NewWarmSandbox, "wantedBy" | "wantedUntil" | "atMost">,
  ) {
    const now = yield* Clock.currentTimeMillis;
    if ((again.get(projectId) ?? 0) > now) return;
    again.delete(projectId);
    const id = yield* newUuid;
    if (!(yield* warm.add({ id, projectId, nodeId, ...wish, createdAt: now }))) return;
    mine.add(id);
    const noteFailure = (error: unknown) =>
      Effect.gen(function* () {
        again.set(projectId, (yield* Clock.currentTimeMillis) + PAUSE_MS);
        yield* Effect.logWarning("a waiting sandbox could not be started", { project: projectId, error });
        // This is the work itself: it must not end itself before the sandbox is gone.
        yield* remove(id, Effect.void);
      });
    const starting = start(id, projectId).pipe(
      Effect.catchTags({
        SandboxError: noteFailure,
        EnvironmentFailed: noteFailure,
        BrokenAgent: noteFailure,
      }),
      // Without this, a sandbox that never gets ready would keep its place.
      Effect.catchDefect(noteFailure),
    );
    yield* FiberMap.run(underWay, id, dutyPart(NAME, starting));
  });
  /** An outage at the end of the service leaves the rest to its next life. */
  const dropAll = Effect.suspend(() =>
    Effect.forEach([...mine], drop, { concurrency: "unbounded", discard: true }),
  ).pipe(Effect.timeoutOption(END_WITHIN), Effect.ignore);
  return { mine, begin, drop, dropAll, destroy, recipeNow };
});

type Keeping = Effect.Success<ReturnType<typeof makeKeeping>>;

/** @returns the waiting sandboxes of this node that may stay. The others are ended. */
const makeTidying = Effect.fnUntraced(function* (
  { nodeId }: WarmPoolDutyOptions,
  { mine, drop, destroy, recipeNow }: Keeping,
) {
  const provider = yield* SandboxProvider;
  const directory = yield* Directory;
  const warm = yield* WarmSandboxes;
  const wantedCount = (projectId: string): number => {
    const knownProject = directory.known(projectId);
    return knownProject?.project.status === "active" ? knownProject.manifest.warm : 0;
  };

  const staysFor = Effect.fnUntraced(function* (row: WarmSandbox, place: number, running: Set<string>) {
    const { id, projectId, recipe, wantedUntil } = row;
    if (!mine.has(id)) return false;
    if (directory.known(projectId)?.project.status !== "active") return false;
    const isWanted =
      wantedUntil === null ? place < wantedCount(projectId) : wantedUntil > (yield* Clock.currentTimeMillis);
    if (!isWanted || recipe === null) return isWanted;
    if (!running.has(id)) return false;
    return yield* recipeNow(id, projectId).pipe(
      Effect.map((now) => now === recipe),
      Effect.timeoutOrElse({ duration: COMPARE_WITHIN, orElse: () => Effect.succeed(false) }),
      Effect.catchTags({
        EnvironmentFailed: () => Effect.succeed(false),
        BrokenAgent: () => Effect.succeed(false),
      }),
    );
  });

  const tidy = Effect.gen(function* () {
    for (const id of yield* warm.abandoned(nodeId, yield* Clock.currentTimeMillis)) yield* destroy(id);
    const rows = yield* warm.unclaimed(nodeId);
    if (rows.length === 0) return rows;
    const sandboxes = yield* answeredInTime("list", provider.list);
    const running = new Set(sandboxes.filter(({ state }) => state === "running").map(({ id }) => id));
    const stay: WarmSandbox[] = [];
    for (const row of rows) {
      const place = stay.filter(
        ({ projectId, wantedBy }) => projectId === row.projectId && wantedBy === "manifest",
      ).length;
      if (yield* staysFor(row, place, running)) stay.push(row);
      else yield* drop(row.id);
    }
    return stay;
  });
  return { tidy, wanted: wantedCount };
});

/** Whether a trigger fires at an instant, and then not again soon, with an agent that a waiting sandbox can have. */
const firesSeldom = (knownProject: KnownProject, id: string, { at, offered }: DueTimer): boolean => {
  const { project, triggers, manifest } = knownProject;
  const trigger = triggers.get(id.slice(project.id.length + 1));
  if (project.triggersPaused || trigger?.type !== "cron") return false;
  if (!waitsAs(manifest.agents, trigger.agent, offered)) return false;
  return (nextDue(trigger, at) ?? Infinity) - at >= TRIGGER_PERIOD_MS;
};

interface DueTimer {
  readonly at: number;
  readonly offered: OfferedRuntimes;
}

/** @returns a function that says whose cron triggers fire soon and seldom enough (K7): the next instants, by project. */
const dueProjects = Effect.gen(function* () {
  const directory = yield* Directory;
  const { schedules } = yield* Timers;
  const runtimes = yield* Runtimes;
  return (now: number): ReadonlyMap<string, number> => {
    const projects = new Map<string, number>();
    for (const { id, due } of schedules.soon(now + TRIGGER_LEAD_MS, TIMERS_MAX)) {
      const projectId = triggerProject(id);
      const knownProject = directory.known(projectId);
      if (
        knownProject !== null &&
        !projects.has(projectId) &&
        firesSeldom(knownProject, id, { at: due, offered: runtimes })
      )
        projects.set(projectId, due);
    }
    return projects;
  };
});

export const warmPoolDuty = (options: WarmPoolDutyOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const pool = yield* WarmPool;
      if (pool.places === 0) return;
      const directory = yield* Directory;
      const projects = yield* Projects;
      const warm = yield* WarmSandboxes;
      const measures = yield* Measures;
      const keeping = yield* makeKeeping(options);
      yield* Effect.addFinalizer(() => keeping.dropAll);
      const { tidy, wanted } = yield* makeTidying(options, keeping);
      const { nodeId } = options;

      const due = yield* dueProjects;

      /** Whether there is a place. If none is free, the oldest of these kinds goes (K3). */
      const makeRoom = Effect.fnUntraced(function* (kinds: readonly WantedBy[]) {
        const rows = yield* warm.unclaimed(nodeId);
        if (rows.length < pool.places) return true;
        const [oldest] = kinds.flatMap((kind) => rows.find(({ wantedBy }) => wantedBy === kind) ?? []);
        if (oldest !== undefined) yield* keeping.drop(oldest.id);
        return oldest !== undefined;
      });
      const grant = Effect.fnUntraced(function* (projectId: string, wantedUntil: number) {
        if (yield* warm.keep({ projectId, nodeId, until: wantedUntil })) return;
        if (yield* makeRoom(["trigger", "manifest"]))
          yield* keeping.begin(projectId, { wantedBy: "person", wantedUntil, atMost: 1 });
      });

      const round = Effect.gen(function* () {
        const stay = yield* tidy;
        for (const [projectId, until] of yield* pool.wishes) yield* grant(projectId, until);
        for (const { project } of directory.all()) {
          const atMost = wanted(project.id);
          const has = stay.filter(({ projectId }) => projectId === project.id).length;
          for (let count = has; count < atMost && (yield* makeRoom(["trigger"])); count += 1)
            yield* keeping.begin(project.id, { wantedBy: "manifest", wantedUntil: null, atMost });
        }
        for (const [projectId, at] of due(yield* Clock.currentTimeMillis))
          if (yield* makeRoom([]))
            yield* keeping.begin(projectId, {
              wantedBy: "trigger",
              wantedUntil: at + TRIGGER_GRACE_MS,
              atMost: 1,
            });
        if (measures.isOn) {
          const rows = yield* warm.unclaimed(nodeId);
          measures.set("warm_sandboxes", {}, rows.filter(({ recipe }) => recipe !== null).length);
        }
      }).pipe(
        Effect.catchTag("SandboxError", (error) =>
          Effect.logWarning("waiting sandboxes could not be listed; trying again", { error }),
        ),
      );
      const signal = Effect.raceFirst(pool.changed, projects.changed);
      yield* runDuty("warm_pool", { round, periodMs: DUTIES.warm_pool.periodMs, signal });
    }),
  );
