/** Admission and drain in memory. The plan is shared with postgres/triggers/admissions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { session as sessionMachine } from "../../../../src/machines/session.ts";
import {
  fireIdentity,
  newIdentity,
  planAdmissions,
  triggerKey,
  type AdmissionFacts,
  type AdmissionPlan,
  type PlannedEntry,
  type PlannedFire,
  type PlannedSession,
} from "../../../../src/store/admission/plan.ts";
import { planDrain, type DrainRequest } from "../../../../src/store/admission/drain.ts";
import { admissionEvents } from "../../../../src/store/event-rows.ts";
import {
  Admissions,
  type Admission,
  type AdmissionRequest,
  type RefusedWait,
  type Skip,
} from "../../../../src/store/ports/triggers/admissions.ts";
import type { Fire, NewFire } from "../../../../src/store/ports/triggers/fires.ts";
import type { Session } from "../../../../src/store/ports/sessions/sessions.ts";
import { firstTransition, sessionOrigin } from "../../../../src/machines/transition.ts";
import { queueInOrder, requireAllWait, takeOut } from "./queue.ts";
import { liveChildrenOf } from "../sessions/sessions.ts";
import { fireOf, Tables, type FireRow, type TableSet } from "../tables.ts";

const START = sessionMachine.start({});

const insertSession = (tables: TableSet, { session, fireId, now }: PlannedSession): void => {
  const record: Session = {
    ...session,
    firstMessage: session.firstMessage ?? null,
    archivedAt: null,
    parentSessionId: session.parentSessionId ?? null,
    status: START.snapshot.state,
    fireId,
    failure: null,
    stopReason: null,
    saved: session.saved ?? null,
    unsaved: null,
    restoreSaved: session.saved !== undefined,
    restored: null,
    lastTurn: null,
    changes: null,
    sandboxId: START.snapshot.context.sandboxId,
    ending: null,
    asked: null,
    restarts: false,
    bootstrapAcceptedAt: null,
    createdAt: now,
    updatedAt: now,
    runningAt: null,
    stoppedAt: null,
    deletedAt: null,
  };
  tables.sessions.set(session.id, { record, snapshot: START.snapshot, version: 1, provisionedAt: now });
  tables.sessionOutbox.append(session.id, START.commands, now);
  const first = firstTransition(START, { now, detail: sessionOrigin(session) });
  tables.keep({ kind: "session", id: session.id }, first, 1);
};

const writeFire = (tables: TableSet, fire: PlannedFire): void => {
  // A row that moves keeps what it answers for.
  const { answersDelivery } = tables.fires.get(fire.id) ?? fire;
  tables.fires.set(fire.id, { ...fire, answersDelivery });
  if (fire.firedAt === null || fire.triggerSlug === null) return;
  const slugs = tables.lastFired.get(fire.projectId) ?? new Map<string, number>();
  const former = slugs.get(fire.triggerSlug) ?? fire.firedAt;
  tables.lastFired.set(fire.projectId, slugs.set(fire.triggerSlug, Math.max(former, fire.firedAt)));
};

type Started = Pick<AdmissionPlan, "sessions" | "fires" | "queue">;

/** Writes sessions with their first commands, ledger rows, last_fired_at, and the events of all of these. */
const start = (tables: TableSet, { sessions, fires, queue }: Started): void => {
  for (const planned of sessions) insertSession(tables, planned);
  for (const fire of fires) writeFire(tables, fire);
  tables.events.append(admissionEvents({ sessions, fires, queue }));
};

const known = (tables: TableSet, fires: readonly NewFire[]): readonly Fire[] => {
  const sought = new Set(fires.map(newIdentity));
  const slugs = new Set(fires.map(({ triggerSlug }) => triggerSlug));
  const rows = [...tables.fires.values()].filter((row) => {
    const answers =
      row.kind === "cron" ? row.replayOf === null && row.status !== "duplicate" : row.answersDelivery;
    if (!answers || !slugs.has(row.triggerSlug)) return false;
    const identity = fireIdentity(row);
    return identity !== null && sought.has(identity);
  });
  return rows.map(fireOf);
};

const editFire = (tables: TableSet, id: string, change: Partial<FireRow>): void => {
  const row = tables.fires.get(id);
  if (row !== undefined) tables.fires.set(id, { ...row, ...change });
};

/** By `triggerKey`. */
const lastFiredOf = (
  tables: TableSet,
  triggers: readonly Pick<Fire, "projectId" | "triggerSlug">[],
): ReadonlyMap<string, number> =>
  new Map(
    triggers.flatMap((trigger) => {
      const at = tables.lastFired.get(trigger.projectId)?.get(trigger.triggerSlug ?? "");
      return at === undefined ? [] : [[triggerKey(trigger), at] as const];
    }),
  );

const factsOf = (
  tables: TableSet,
  accountId: string,
  requests: readonly AdmissionRequest[],
): AdmissionFacts => {
  const account = tables.accounts.get(accountId);
  const projects = [...tables.projects.values()].map(({ record }) => record);
  const waiting = tables.queue.filter((row) => row.accountId === accountId);
  return {
    cap: account?.cap ?? 0,
    activeSessions: account?.activeSessions ?? 0,
    waiting: account?.queuedFires ?? 0,
    activeProjects: new Map(
      projects
        .filter((project) => project.accountId === accountId && project.status === "active")
        .map(({ id, version }) => [id, version]),
    ),
    liveChildren: new Map(
      requests.flatMap(({ session: { parentSessionId: parent } }) =>
        parent === undefined ? [] : [[parent, liveChildrenOf(tables, parent)] as const],
      ),
    ),
    lastFired: lastFiredOf(
      tables,
      requests.flatMap(({ fire }) => (fire?.prompt.is === "cron" ? [fire] : [])),
    ),
    known: known(
      tables,
      requests.flatMap(({ fire }) => (fire === null ? [] : [fire])),
    ),
    lost: new Set(
      [...tables.sessions.values()].flatMap(({ record: { id, fireId, status } }) => {
        const items = [...(tables.conversations.get(id)?.items.values() ?? [])];
        const hasBegun = items.some(({ nativeId }) => nativeId !== null);
        return fireId !== null && status === "failed" && !hasBegun ? [fireId] : [];
      }),
    ),
    waitingCron: waiting
      .filter(({ kind }) => kind === "cron")
      .map(({ fireId, projectId, triggerSlug }) => ({ id: fireId, projectId, triggerSlug })),
  };
};

const admit = (
  tables: TableSet,
  accountId: string,
  requests: readonly AdmissionRequest[],
): readonly Admission[] => {
  const plan = planAdmissions(factsOf(tables, accountId, requests), requests);
  // Before the first write: a defect must leave everything as it was.
  requireAllWait(tables, plan.overlapped, "skipped");
  for (const id of plan.outlived) editFire(tables, id, { answersDelivery: false });
  for (const id of plan.overlapped) editFire(tables, id, { status: "skipped", reason: "overlapped" });
  start(tables, plan);
  for (const fire of plan.fires) {
    if (fire.kind === "cron" && fire.replayOf === null) moveCursor(tables, fire, fire.scheduledFor ?? 0);
  }
  enqueue(tables, plan.queue);
  tables.moveCounters(accountId, {
    sessions: plan.sessions.length,
    queued: plan.queue.length - plan.overlapped.length,
    requestBytes: storeRequests(tables, accountId, plan),
  });
  return plan.answers;
};

/** A later instant replaces the waiting one. An entry that replaces nothing goes to the end. */
const enqueue = (tables: TableSet, entries: readonly PlannedEntry[]): void => {
  for (const { fire, session, template, replaces, queuedAt, expiresAt } of entries) {
    const { id: fireId, accountId, projectId, triggerSlug, kind } = fire;
    const row = { fireId, accountId, projectId, triggerSlug, kind, session, template, queuedAt, expiresAt };
    tables.queue =
      replaces === null
        ? [...tables.queue, row]
        : tables.queue.map((waiting) => (waiting.fireId === replaces ? row : waiting));
  }
};

/** @returns the growth of the account's stored requests, in bytes. */
const storeRequests = (
  tables: TableSet,
  accountId: string,
  { requests, forgotten }: AdmissionPlan,
): number => {
  let grown = 0;
  for (const fireId of forgotten) {
    grown -= tables.requests.get(fireId)?.body.byteLength ?? 0;
    tables.requests.delete(fireId);
  }
  for (const [fireId, request] of requests) {
    grown += request.body.byteLength - (tables.requests.get(fireId)?.body.byteLength ?? 0);
    tables.requests.delete(fireId);
    tables.requests.set(fireId, { ...request, accountId });
  }
  return grown;
};

type OfTrigger = Pick<Fire, "projectId" | "triggerSlug">;

const moveCursor = (tables: TableSet, { projectId, triggerSlug }: OfTrigger, to: number): void => {
  const cursors = tables.cursors.get(projectId);
  if (triggerSlug === null) return;
  const cursor = cursors?.get(triggerSlug);
  if (cursor === undefined) return;
  cursors?.set(triggerSlug, { ...cursor, accountedUntil: Math.max(cursor.accountedUntil, to) });
};

const skip = (tables: TableSet, request: Skip): boolean => {
  const { accountId, projectId, projectVersion, triggerSlug, reason, instants, now } = request;
  const project = tables.projects.get(projectId)?.record;
  if (project?.version !== projectVersion || project.status !== "active") return false;
  const isOwn = (row: FireRow) =>
    row.kind === "cron" && row.triggerSlug === triggerSlug && row.projectId === projectId;
  const taken = new Set<number | null>();
  for (const row of tables.fires.values())
    if (isOwn(row) && row.status !== "duplicate" && row.replayOf === null) taken.add(row.scheduledFor);
  for (const { id, dueAt } of instants) {
    const fire: PlannedFire = {
      id,
      accountId,
      projectId,
      triggerSlug,
      kind: "cron",
      status: "skipped",
      reason,
      scheduledFor: dueAt,
      receivedAt: now,
      deliveryId: null,
      answersDelivery: false,
      sessionId: null,
      attempts: 0,
      replayOf: null,
      duplicateOf: null,
      verifiedWith: null,
      firedAt: null,
      decidedAt: now,
    };
    if (!taken.has(dueAt)) writeFire(tables, fire);
    moveCursor(tables, fire, dueAt);
  }
  return true;
};

const cancel = (tables: TableSet, fireId: string, now: number): boolean => {
  const row = tables.queue.find((waiting) => waiting.fireId === fireId);
  if (row === undefined) return false;
  takeOut(tables, [fireId], { status: "cancelled", reason: "requested", now });
  tables.moveCounters(row.accountId, { queued: -1 });
  return true;
};

const refuse = (
  tables: TableSet,
  accountId: string,
  { refused, now }: { readonly refused: readonly RefusedWait[]; readonly now: number },
): void => {
  for (const { fireId, status, reason } of refused) {
    if (!tables.queue.some((row) => row.accountId === accountId && row.fireId === fireId)) continue;
    takeOut(tables, [fireId], { status, reason, now });
    tables.moveCounters(accountId, { queued: -1 });
  }
};

const expire = (tables: TableSet, accountId: string, now: number): void => {
  const expired = tables.queue.filter((row) => row.accountId === accountId && row.expiresAt <= now);
  takeOut(
    tables,
    expired.map(({ fireId }) => fireId),
    { status: "expired", reason: "queue_ttl", now },
  );
  tables.moveCounters(accountId, { queued: -expired.length });
};

const noteTurns = (tables: TableSet, accountId: string, projectIds: readonly string[]): void => {
  const account = tables.accounts.get(accountId);
  if (account === undefined) return;
  for (const [index, id] of projectIds.entries()) {
    const row = tables.projects.get(id);
    if (row !== undefined) {
      tables.projects.set(id, { ...row, drainedTurn: account.drainedTurns + index + 1 });
    }
  }
  tables.accounts.set(accountId, { ...account, drainedTurns: account.drainedTurns + projectIds.length });
};

const drain = (tables: TableSet, accountId: string, request: DrainRequest) => {
  const { sessionIds, now } = request;
  const waiting = tables.queue.filter((row) => row.accountId === accountId);
  // Before the first write: a defect must leave everything as it was.
  requireAllWait(
    tables,
    waiting.map(({ fireId }) => fireId),
    "expired",
  );
  expire(tables, accountId, now);
  const account = tables.accounts.get(accountId);
  const free = account === undefined ? 0 : account.cap - account.activeSessions;
  const count = Math.max(0, Math.min(free, sessionIds.length));
  const taken = queueInOrder(tables, accountId).slice(0, count);
  tables.queue = tables.queue.filter((row) => !taken.includes(row));
  noteTurns(
    tables,
    accountId,
    taken.map(({ projectId }) => projectId),
  );
  const next = taken.flatMap(({ fireId, session, template }) => {
    const fire = tables.fires.get(fireId);
    if (fire === undefined) return [];
    const person = fire.kind === "session" ? tables.personNow(session.createdBy, fire.projectId) : null;
    return [{ fire: fireOf(fire), session, template, person }];
  });
  const lastFired = lastFiredOf(
    tables,
    next.flatMap(({ fire, template }) => (template === null ? [] : [fire])),
  );
  const { sessions, rows, admitted } = planDrain(accountId, next, { lastFired, request });
  tables.moveCounters(accountId, { sessions: sessions.length, queued: -taken.length });
  start(tables, { sessions, fires: rows, queue: [] });
  const isWaiting = tables.queue.some((row) => row.accountId === accountId);
  return { admitted, more: taken.length > 0 && isWaiting && admitted.length < free };
};

export const layer = Layer.effect(
  Admissions,
  Effect.map(Tables, (tables) => ({
    admit: (accountId, requests) => Effect.sync(() => admit(tables, accountId, requests)),
    drain: (accountId, request) => Effect.sync(() => drain(tables, accountId, request)),
    skip: (request) => Effect.sync(() => skip(tables, request)),
    heads: (accountId, limit) =>
      Effect.sync(() =>
        queueInOrder(tables, accountId)
          .slice(0, limit)
          .flatMap(({ fireId, session }) => {
            const kind = tables.fires.get(fireId)?.kind;
            return kind === undefined ? [] : [{ fireId, kind, session }];
          }),
      ),
    refuse: (accountId, refused, now) => Effect.sync(() => refuse(tables, accountId, { refused, now })),
    cancel: (fireId, now) => Effect.sync(() => cancel(tables, fireId, now)),
    waitingAccounts: Effect.sync(() => [...new Set(tables.queue.map(({ accountId }) => accountId))]),
  })),
);
