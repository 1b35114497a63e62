/** What must hold at every commit (threats.md I1, I6, I8, I10, I11, I12, I13, I14, I15, I18). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { triggerActorId } from "../../../src/actors/schedules.ts";
import { Timers } from "../../../src/actors/timers.ts";
import { GitBackend } from "../../../src/git/port.ts";
import type { SandboxSpec } from "../../../src/sandbox/port.ts";
import type { SandboxStatus, SessionStatus } from "../../../src/domain/session/session.ts";
import type { QueueRow, TableSet } from "../../twins/store/tables.ts";
import type { Call } from "../world/boundary.ts";
import { ConversationWatch } from "../world/conversations.ts";
import { isLiveSandbox, ownerlessFaults } from "../world/owners.ts";
import { fenceOf } from "./fences.ts";
import { CRON_SLUGS } from "../world/manifests.ts";
import { skippedInTime, type Skipped } from "./skips.ts";
import { mint, tokensOf } from "../world/tokens.ts";
import type { World } from "../world.ts";

const SESSION_MOVES: ReadonlySet<string> = new Set([
  "none provisioning",
  "provisioning running",
  "provisioning failed",
  "provisioning stopped",
  "running stopped",
  "running failed",
  "stopped provisioning",
  "failed provisioning",
]);
const SANDBOX_MOVES: ReadonlySet<string> = new Set([
  "none provisioning",
  "provisioning active",
  "provisioning error",
  "provisioning stopped",
  "provisioning archived",
  "active error",
  "active stopped",
  "active archived",
]);

export const isLive = (status: SessionStatus): boolean => status === "provisioning" || status === "running";

export const liveByAccount = (tables: TableSet): ReadonlyMap<string, number> => {
  const live = new Map<string, number>();
  for (const { record } of tables.sessions.values())
    if (isLive(record.status)) live.set(record.accountId, (live.get(record.accountId) ?? 0) + 1);
  return live;
};

/** Accounts as they were looked at before: their live sessions, and their caps where those may have changed since. */
export interface FormerAccounts {
  readonly live: ReadonlyMap<string, number>;
  readonly caps?: ReadonlyMap<string, number>;
}

/**
 * I1, I12: the counter is the count, and passes the cap only where the cap was lowered below it. One that somebody made
 * wrong stays wrong by just that, until it is right.
 */
export const slotFaults = (
  tables: TableSet,
  former: FormerAccounts,
  distorted: Map<string, number>,
): readonly string[] => {
  const counts = liveByAccount(tables);
  return [...tables.accounts].flatMap(([id, { activeSessions, cap }]) => {
    const live = counts.get(id) ?? 0;
    const faults: string[] = [];
    if (live === activeSessions) distorted.delete(id);
    const by = distorted.get(id) ?? 0;
    if (live + by !== activeSessions)
      faults.push(`I1 ${id} counts ${activeSessions} and has ${live} live sessions`);
    const allowed = Math.max(cap, former.caps?.get(id) ?? 0);
    if (by >= 0 && live > allowed && live > (former.live.get(id) ?? 0))
      faults.push(`I1 ${id} has ${live} live sessions over ${cap}`);
    return faults;
  });
};

/** I6, I11: from what each was to what it is. */
export const moveFaults = (
  former: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
  moves: ReadonlySet<string>,
): readonly string[] =>
  [...now].flatMap(([id, status]) => {
    const was = former.get(id) ?? "none";
    return was === status || moves.has(`${was} ${status}`) ? [] : [`I6 ${id} went from ${was} to ${status}`];
  });

/** I10: at most one record of a session is provisioning or active. */
export const doubleFaults = (tables: TableSet): readonly string[] => {
  const seen = new Set<string>();
  return [...tables.sandboxes.values()].flatMap(({ record: { id, sessionId, status } }) => {
    if (status !== "provisioning" && status !== "active") return [];
    if (seen.has(sessionId)) return [`I10 session ${sessionId} has another live sandbox, ${id}`];
    seen.add(sessionId);
    return [];
  });
};

/** I13: a fire that left the queue to start left no earlier one of its project behind. */
export const overtakingFaults = (before: readonly QueueRow[], tables: TableSet): readonly string[] => {
  const waiting = new Set(tables.queue.map(({ fireId }) => fireId));
  return before.flatMap((row, index) => {
    if (tables.fires.get(row.fireId)?.status !== "fired") return [];
    const passed = before
      .slice(0, index)
      .find(({ projectId, fireId }) => projectId === row.projectId && waiting.has(fireId));
    return passed === undefined ? [] : [`I13 fire ${row.fireId} overtook ${passed.fireId}`];
  });
};

/** I13, and N4 of src/store/admission/plan.ts: what may wait was not started past those that wait. */
export const jumpFaults = (
  before: readonly QueueRow[],
  tables: TableSet,
  isNew: (sessionId: string) => boolean,
): readonly string[] => {
  const waited = new Set(before.map(({ fireId }) => fireId));
  const waits = new Set(
    tables.queue.flatMap(({ fireId, accountId }) => (waited.has(fireId) ? [accountId] : [])),
  );
  return [...tables.sessions.values()].flatMap(({ record: { id, fireId, accountId } }) => {
    if (fireId === null || !isNew(id) || waited.has(fireId) || !waits.has(accountId)) return [];
    const fire = tables.fires.get(fireId);
    const mayWait = fire !== undefined && fire.kind !== "manual" && fire.replayOf === null;
    return mayWait ? [`I13 fire ${fireId} was started past those that wait`] : [];
  });
};

/** C18: a paused project's triggers accept nothing from the moment of the pause. */
export const pausedFaults = (tables: TableSet, isNew: (fireId: string) => boolean): readonly string[] =>
  [...tables.fires.values()].flatMap(({ id, projectId, kind, status, replayOf }) => {
    const isAccepted = (status === "fired" || status === "queued") && kind !== "manual" && replayOf === null;
    if (!isAccepted || !isNew(id)) return [];
    const project = tables.projects.get(projectId)?.record;
    return project?.triggersPaused === true ? [`C18 fire ${id} was accepted for a paused project`] : [];
  });

/** A deleted session never runs again, except while its work is saved: it would be hidden from users. */
export const deletedFaults = (tables: TableSet): readonly string[] =>
  [...tables.sessions.values()].flatMap(({ record: { id, status, deletedAt }, snapshot }) =>
    deletedAt !== null && isLive(status) && snapshot.context.ending === null
      ? [`I6 session ${id} is deleted and ${status}`]
      : [],
  );

/** `running` is written on the word of the session's own sandbox. */
export const runningFaults = (tables: TableSet): readonly string[] =>
  [...tables.sessions.values()].flatMap(({ record: { id, status, sandboxId } }) => {
    if (status !== "running") return [];
    const sandbox = tables.sandboxes.get(sandboxId ?? "")?.record.status;
    return sandbox === undefined || sandbox === "provisioning"
      ? [`I6 session ${id} runs and its sandbox is ${sandbox ?? "not there"}`]
      : [];
  });

/** I17: no default branch is one that a session may push to. */
export const defaultFaults = ({ projects, sessions }: TableSet): readonly string[] =>
  [...projects.values()].flatMap(({ record: { id, defaultBranch } }) =>
    sessions.has(defaultBranch) ? [`I17 the default branch of ${id} is a session's, ${defaultBranch}`] : [],
  );

export type LastFired = ReadonlyMap<string, number>;

export const lastFiredOf = (tables: TableSet): LastFired =>
  new Map(
    [...tables.lastFired].flatMap(([project, slugs]) =>
      [...slugs].map(([slug, at]) => [`${project}/${slug}`, at] as const),
    ),
  );

/** I14: it never moves back. */
export const regressions = (former: LastFired, now: LastFired): readonly string[] =>
  [...former].flatMap(([trigger, at]) =>
    (now.get(trigger) ?? 0) < at ? [`I14 last_fired_at of ${trigger} moved back`] : [],
  );

const WRITES = new Set([
  "save",
  "admit",
  "drain",
  "cancel",
  "skip",
  "open",
  "update",
  "create",
  "keepCursors",
  "mend",
  "complete",
]);

/** Writes with which rows come to the ledger. */
const FIRING = new Set(["admit", "skip"]);

/** What lived in a sandbox lives at most so much longer than its session, ms (I15). */
const TOKEN_LIFE_MS = 1_000;

/** A boot that its record's end has interrupted makes nothing any more after this. */
const LATE_MS = 1_000;

/** A timer notices within a minute that a clock was set, ms. */
const NOTICED_MS = 65_000;
/** Messages to a trigger between two of its instants, in calm. */
const TOLD_MAX = 3;

/** While it is calm a node holds timers of the triggers that live there alone. */
export const misplacedTimers = ({ nodes, places, tables }: World): readonly string[] =>
  nodes.flatMap((node, index) => {
    const schedules = node.life === null ? null : Context.get(node.life.context, Timers).schedules;
    return [...tables.projects.keys()].flatMap((projectId) =>
      CRON_SLUGS.flatMap((slug) => {
        const trigger = triggerActorId(projectId, slug);
        const isHeld = schedules !== null && schedules.get(trigger) !== null;
        return isHeld && !places.isOn(node, trigger)
          ? [`C13 node ${index} has a timer of ${trigger}, which lives elsewhere`]
          : [];
      }),
    );
  });

/** Looks after every commit of a simulated service. */
export class CommitWatch {
  readonly violations: string[] = [];
  readonly #world: World;
  readonly #conversations = new ConversationWatch();
  #sessions: ReadonlyMap<string, SessionStatus> = new Map();
  #sandboxes: ReadonlyMap<string, SandboxStatus> = new Map();
  #live: ReadonlyMap<string, number> = new Map();
  #lastFired: LastFired = new Map();
  #queue: readonly QueueRow[] = [];
  #fires: ReadonlySet<string> = new Set();
  /** Sessions that were found idle, and have not ended yet. */
  readonly #idle = new Set<string>();
  /** When each session was seen to have ended, in ms of `elapsed`, until it is live again; Infinity: it was looked at. */
  readonly #over = new Map<string, number>();
  /** How often each trigger was told to look since its cursor moved. */
  readonly #told = new Map<string, { readonly until: number; readonly times: number }>();
  /** When each record was seen to have ended, in ms of `elapsed`. */
  readonly #ended = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    world.boundary.onEffect = (call) => this.#look(call);
    world.boundary.onCall = (call) => {
      const fence = fenceOf(world.tables, call);
      return (exit) => this.violations.push(...fence(exit));
    };
    world.onDestroy = (sandboxId) => this.#lookAtDestroy(sandboxId);
    world.onTold = (trigger) => this.#lookAtTold(trigger);
  }

  /** Between two steps there is nothing that was not looked at. */
  look(): void {}

  #look(call: Call): void {
    const { port, operation, given, process } = call;
    this.violations.push(...this.#conversations.look(call, this.#world.tables));
    if (port === "provider" && operation === "create") this.#lookAtCreate(given[0] as SandboxSpec);
    if (operation === "changedSince") this.#lookAtCalm();
    if (!port.startsWith("store.") || !WRITES.has(operation)) return;
    const { tables } = this.#world;
    if (operation === "skip" && this.#world.isCalm)
      this.violations.push(
        ...skippedInTime(tables, {
          skipped: given[0] as Skipped,
          now: process.clock.currentTimeMillisUnsafe(),
          isNew: (id) => !this.#fires.has(id),
        }),
      );
    const sessions = new Map<string, SessionStatus>();
    for (const [id, { record }] of tables.sessions) sessions.set(id, record.status);
    const sandboxes = new Map<string, SandboxStatus>();
    for (const [id, { record }] of tables.sandboxes) sandboxes.set(id, record.status);
    const lastFired = lastFiredOf(tables);
    this.#lookAtIdle();
    this.violations.push(
      ...slotFaults(tables, { live: this.#live }, this.#world.distorted),
      ...moveFaults(this.#sessions, sessions, SESSION_MOVES),
      ...moveFaults(this.#sandboxes, sandboxes, SANDBOX_MOVES),
      ...doubleFaults(tables),
      ...overtakingFaults(this.#queue, tables),
      ...regressions(this.#lastFired, lastFired),
      ...jumpFaults(this.#queue, tables, (id) => !this.#sessions.has(id)),
      ...(operation === "admit" ? pausedFaults(tables, (id) => !this.#fires.has(id)) : []),
      ...runningFaults(tables),
      ...(operation === "update" ? defaultFaults(tables) : []),
      ...deletedFaults(tables),
      ...ownerlessFaults(tables, this.#world.forgotten),
    );
    for (const [id, status] of sandboxes) {
      const hasEnded = !isLiveSandbox(status);
      if (hasEnded && !this.#ended.has(id)) this.#ended.set(id, this.#world.time.elapsed);
    }
    for (const [id, status] of sessions) {
      if (isLive(status)) this.#over.delete(id);
      else if (!this.#over.has(id)) this.#over.set(id, this.#world.time.elapsed);
    }
    this.#world.cursors.look(tables);
    this.#sessions = sessions;
    this.#sandboxes = sandboxes;
    this.#live = liveByAccount(tables);
    this.#lastFired = lastFired;
    this.#queue = tables.queue;
    // They are many after a long downtime.
    if (FIRING.has(operation)) this.#fires = new Set(tables.fires.keys());
  }

  /** Once a second: the directory's poll is a clock that only stops with the service. */
  #lookAtCalm(): void {
    const { calm, cursors, places, nodes, tables, time, isCalm, walls, clockSetAt } = this.#world;
    const clockOf = (trigger: string): number =>
      (places.isPlaced ? nodes.find((node) => places.isOn(node, trigger))?.wall.now : walls.most) ?? 0;
    const due = cursors.due(tables, clockOf);
    const areClocksCalm = time.elapsed - clockSetAt > NOTICED_MS;
    this.violations.push(
      ...calm.look(tables, { elapsed: time.elapsed, isCalm, due, areClocksCalm }),
      ...this.#lateTokens(),
      ...(isCalm ? misplacedTimers(this.#world) : []),
    );
  }

  /** A trigger gets an instant once, and once more if something was in its way. */
  #lookAtTold(trigger: string): void {
    const { tables, isCalm, time, clockSetAt } = this.#world;
    const [projectId = "", slug = ""] = trigger.split("/");
    const until = tables.cursors.get(projectId)?.get(slug)?.accountedUntil ?? 0;
    const former = this.#told.get(trigger);
    const isQuiet = isCalm && time.elapsed - clockSetAt > NOTICED_MS;
    const times = isQuiet && former?.until === until ? former.times + 1 : 1;
    this.#told.set(trigger, { until, times });
    if (isQuiet && times > TOLD_MAX)
      this.violations.push(`C13 ${trigger} was told ${times} times between two of its instants`);
  }

  /** I15: a second after a session's end nothing that lived in its sandbox opens anything. Looked at once an end. */
  #lateTokens(): readonly string[] {
    const { tables, time } = this.#world;
    return [...this.#over].flatMap(([sessionId, at]) => {
      if (time.elapsed - at <= TOKEN_LIFE_MS) return [];
      this.#over.set(sessionId, Infinity);
      const sandboxId = tables.sessions.get(sessionId)?.record.sandboxId ?? null;
      return sandboxId !== null && tokensOf(this.#world, sandboxId).some((isTaken) => isTaken)
        ? [`I15 a token of the ended session ${sessionId} is taken`]
        : [];
    });
  }

  /**
   * No working agent is stopped for idleness (api.md 3 "Idle"). The check runs at the decision: while the work is
   * saved, a clock may be set back, and an overlong turn may become a short one.
   */
  #lookAtIdle(): void {
    for (const { record, snapshot } of this.#world.tables.sessions.values()) {
      const { id, sandboxId } = record;
      if (snapshot.context.ending !== "idle") this.#idle.delete(id);
      else if (!this.#idle.has(id)) {
        this.#idle.add(id);
        if (sandboxId !== null && this.#world.daemons.isAtWork(sandboxId))
          this.violations.push(`Z1 session ${id} was found idle while its agent worked`);
      }
    }
  }

  /** I8: by now the session has its branch, and the sandbox has its record. */
  #lookAtCreate({ id: sandboxId, sessionId }: SandboxSpec): void {
    if (sessionId === null) return this.#world.keepSecret(sandboxId);
    const { tables } = this.#world;
    const record = tables.sandboxes.get(sandboxId)?.record;
    const session = tables.sessions.get(record?.sessionId ?? "")?.record;
    if (session === undefined)
      return void this.violations.push(`I8 the sandbox ${sandboxId} was created without a session`);
    const tip = this.#world.ask(
      Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId: session.projectId }, session.id)),
    );
    this.#world.keepSecret(sandboxId);
    mint(this.#world, { sessionId: session.id, sandboxId });
    const endedAt = this.#ended.get(sandboxId);
    if (
      endedAt !== undefined &&
      !this.#world.isOwnershipVague &&
      this.#world.time.elapsed - endedAt > LATE_MS
    )
      this.violations.push(`I9 the sandbox ${sandboxId} was created after its record had ended`);
    if (tip === null) this.violations.push(`I8 the sandbox of ${session.id} was created before its branch`);
  }

  /** I9: only a live session's own actor removes its sandbox, and it makes sure that the sandbox goes. */
  #lookAtDestroy(sandboxId: string): void {
    const { tables, liedAbout, isOwnershipVague } = this.#world;
    const { status, warmRecipe = null } = tables.sandboxes.get(sandboxId)?.record ?? {};
    // A boot replaces one that waited and is outdated.
    if ((status === "provisioning" && warmRecipe === null) || status === "active")
      this.violations.push(`I9 the sandbox ${sandboxId} was destroyed while its record is ${status}`);
    const isForgotten = status !== undefined && tables.sandboxOutbox.of(sandboxId).length === 0;
    // A late owner may have created it again: then the round must remove it.
    if (isForgotten && !isOwnershipVague && !liedAbout.has(sandboxId))
      this.violations.push(`I9 the sandbox ${sandboxId} was left for the orphans' round`);
  }
}
