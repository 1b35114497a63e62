/** Admission and drain in memory: see postgres/admissions.ts, with which it shares the plan. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { session as sessionMachine } from "../../machines/session.ts";
import {
  answersDelivery,
  identityOf,
  planAdmissions,
  planFailure,
  type AdmissionFacts,
  type PlannedFire,
  type PlannedSession,
} from "../admission-plan.ts";
import { admissionEvents } from "../event-rows.ts";
import { Admissions, type Admission, type AdmissionRequest } from "../port.ts";
import type { Fire, NewFire, Session } from "../records.ts";
import { fireOf, queueInOrder } from "./fires.ts";
import { Tables, type FireRow, type TableSet } from "./tables.ts";

type DrainRequest = Parameters<(typeof Admissions)["Service"]["drain"]>[1];

const START = sessionMachine.start({});

const insertSession = (tables: TableSet, { session, fireId, now }: PlannedSession): void => {
  const record: Session = {
    ...session,
    status: START.snapshot.state,
    fireId,
    failure: null,
    stopReason: null,
    sandboxId: START.snapshot.context.sandboxId,
    bootstrapAcceptedAt: null,
    createdAt: now,
    updatedAt: now,
    runningAt: null,
    stoppedAt: null,
    deletedAt: null,
  };
  tables.sessions.set(session.id, { record, snapshot: START.snapshot, version: 1, provisionedAt: now });
  tables.sessionOutbox.append(session.id, START.commands);
};

const writeFire = (tables: TableSet, fire: PlannedFire): void => {
  tables.fires.set(fire.id, { ...fire, answersDelivery: answersDelivery(fire) });
  if (fire.firedAt === null) return;
  const slugs = tables.lastFired.get(fire.projectId) ?? new Map<string, number>();
  const former = slugs.get(fire.triggerSlug) ?? fire.firedAt;
  tables.lastFired.set(fire.projectId, slugs.set(fire.triggerSlug, Math.max(former, fire.firedAt)));
};

/** Sessions with their first commands, ledger rows, last_fired_at and the events of all that. */
const start = (
  tables: TableSet,
  sessions: readonly PlannedSession[],
  fires: readonly PlannedFire[],
): void => {
  for (const planned of sessions) insertSession(tables, planned);
  for (const fire of fires) writeFire(tables, fire);
  tables.events.append(admissionEvents(sessions, fires));
};

const known = (tables: TableSet, fires: readonly NewFire[]): readonly Fire[] => {
  const sought = new Set(fires.map(identityOf));
  const rows = [...tables.fires.values()].filter((row) => {
    const identity = identityOf(row);
    const answers = row.kind === "cron" ? row.status !== "duplicate" : row.answersDelivery;
    return identity !== null && answers && sought.has(identity);
  });
  return rows.map(fireOf);
};

const editFire = (tables: TableSet, id: string, change: Partial<FireRow>): void => {
  const row = tables.fires.get(id);
  if (row !== undefined) tables.fires.set(id, { ...row, ...change });
};

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
    waiting: waiting.length,
    activeProjects: new Set(
      projects
        .filter((project) => project.accountId === accountId && project.status === "active")
        .map(({ id }) => id),
    ),
    known: known(
      tables,
      requests.flatMap(({ fire }) => (fire === null ? [] : [fire])),
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
  for (const id of plan.outlived) editFire(tables, id, { answersDelivery: false });
  for (const id of plan.overlapped) editFire(tables, id, { status: "skipped", reason: "overlapped" });
  tables.queue = tables.queue.filter(({ fireId }) => !plan.overlapped.includes(fireId));
  tables.moveSlots(accountId, plan.sessions.length);
  start(tables, plan.sessions, plan.fires);
  const entries = plan.queue.map(({ fire, session, queuedAt, expiresAt }) => ({
    fireId: fire.id,
    accountId: fire.accountId,
    projectId: fire.projectId,
    triggerSlug: fire.triggerSlug,
    kind: fire.kind,
    session,
    queuedAt,
    expiresAt,
  }));
  tables.queue = [...tables.queue, ...entries];
  return plan.answers;
};

const expire = (tables: TableSet, accountId: string, now: number): void => {
  const expired = tables.queue.filter((row) => row.accountId === accountId && row.expiresAt <= now);
  for (const { fireId } of expired) editFire(tables, fireId, { status: "expired", reason: "queue_ttl" });
  tables.queue = tables.queue.filter((row) => !expired.includes(row));
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
  const { sessionIds, now, bootTimeoutMs } = request;
  expire(tables, accountId, now);
  const account = tables.accounts.get(accountId);
  const free = account === undefined ? 0 : account.cap - account.activeSessions;
  const count = Math.max(0, Math.min(free, sessionIds.length));
  const pairs = queueInOrder(tables, accountId)
    .slice(0, count)
    .flatMap((row, index) => {
      const [fire, sessionId] = [tables.fires.get(row.fireId), sessionIds[index]];
      return fire === undefined || sessionId === undefined ? [] : [{ row, fire, sessionId }];
    });
  const taken = new Set(pairs.map(({ row }) => row));
  tables.queue = tables.queue.filter((row) => !taken.has(row));
  noteTurns(
    tables,
    accountId,
    pairs.map(({ row }) => row.projectId),
  );
  tables.moveSlots(accountId, pairs.length);
  start(
    tables,
    pairs.map(({ row, sessionId }) => ({
      session: { ...row.session, id: sessionId, bootDeadlineAt: now + bootTimeoutMs },
      fireId: row.fireId,
      now,
    })),
    pairs.map(({ fire, sessionId }) =>
      Object.assign({}, fire, { status: "fired" as const, reason: null, sessionId, firedAt: now }),
    ),
  );
  const isWaiting = tables.queue.some((row) => row.accountId === accountId);
  const admitted = pairs.map(({ fire, sessionId }) => ({ fireId: fire.id, sessionId }));
  return { admitted, more: pairs.length > 0 && isWaiting && pairs.length < free };
};

const recordFailed = (tables: TableSet, fire: NewFire, reason: string): void => {
  const { row, outlived } = planFailure(fire, { reason, former: known(tables, [fire])[0] ?? null });
  if (outlived !== null) editFire(tables, outlived, { answersDelivery: false });
  if (row !== null) writeFire(tables, row);
};

export const layer = Layer.effect(
  Admissions,
  Effect.map(Tables, (tables) => ({
    admit: (accountId, requests) => Effect.sync(() => admit(tables, accountId, requests)),
    drain: (accountId, request) => Effect.sync(() => drain(tables, accountId, request)),
    recordFailed: (fire, reason) =>
      Effect.sync(() => {
        recordFailed(tables, fire, reason);
      }),
    waitingAccounts: Effect.sync(() => [...new Set(tables.queue.map(({ accountId }) => accountId))]),
  })),
);
