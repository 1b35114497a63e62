/** Deleted projects in memory: see postgres/projects/project-deletions.ts. All rows of a project go in one step. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isRestorable } from "../../../../src/domain/project/deletion.ts";
import { isLive } from "../../../../src/domain/session/session.ts";
import { isLiveBuildState } from "../../../../src/machines/environment-build.ts";
import { ProjectDeletions } from "../../../../src/store/ports/projects/project-deletions.ts";
import type { Project } from "../../../../src/store/ports/projects/projects.ts";
import { cancelWaiting } from "../triggers/queue.ts";
import { Tables, type TableSet } from "../tables.ts";

const UNWANTED_MAX = 100;

const begin = (tables: TableSet, id: string, { now, deletesAt }: { now: number; deletesAt: number }) => {
  const row = tables.projects.get(id);
  if (row === undefined || row.record.status === "deleted") return row?.record ?? null;
  const { status } = row.record;
  const record: Project = { ...row.record, status: "deleted", deletesAt, updatedAt: now };
  tables.projects.set(id, { ...row, formerStatus: status, record });
  tables.markChanged(id);
  cancelWaiting(tables, id, { reason: "project_deleted", now });
  return tables.projects.get(id)?.record ?? null;
};

const restore = (tables: TableSet, id: string, now: number) => {
  const row = tables.projects.get(id);
  if (row === undefined || row.formerStatus === null || !isRestorable(row.record, now)) return null;
  const record: Project = { ...row.record, status: row.formerStatus, deletesAt: null, updatedAt: now };
  tables.projects.set(id, { ...row, formerStatus: null, record });
  tables.markChanged(id);
  return tables.projects.get(id)?.record ?? null;
};

const drop = <Row>(
  rows: Map<string, Row>,
  isDoomed: (row: Row, key: string) => boolean,
): readonly string[] => {
  const doomed = [...rows].filter(([key, row]) => isDoomed(row, key)).map(([key]) => key);
  for (const key of doomed) rows.delete(key);
  return doomed;
};

const isBusy = (tables: TableSet, projectId: string): boolean => {
  const isOwn = ({ record }: { readonly record: { readonly projectId: string } }) =>
    record.projectId === projectId;
  const sessions = [...tables.sessions.values()].filter(isOwn).map(({ record }) => record);
  const ids = new Set(sessions.map(({ id }) => id));
  return (
    sessions.some(({ status }) => isLive(status)) ||
    [...tables.sandboxes.values()].some(
      ({ record }) => ids.has(record.sessionId) && tables.isSandboxLive(record.id),
    ) ||
    [...tables.environmentBuilds.values()].some((row) => isOwn(row) && isLiveBuildState(row.snapshot.state))
  );
};

/** Removes rows of the project's sessions. @returns the sessions and their sandboxes */
const dropSessions = (tables: TableSet, projectId: string): readonly string[] => {
  const sessions = drop(tables.sessions, ({ record }) => record.projectId === projectId);
  const isOf = (id: string) => sessions.includes(id);
  const sandboxes = drop(tables.sandboxes, ({ record }) => isOf(record.sessionId));
  for (const rows of [tables.conversations, tables.logs, tables.suspensions])
    drop<unknown>(rows, (_, id) => isOf(id));
  drop(tables.previews, ({ sessionId }) => isOf(sessionId));
  drop(tables.tokens, ({ sessionId }) => sessionId !== null && isOf(sessionId));
  for (const id of sessions) {
    tables.sessionOutbox.forget(id);
    tables.conversationOutbox.forget(id);
  }
  for (const id of sandboxes) tables.sandboxOutbox.forget(id);
  return [...sessions, ...sandboxes];
};

const dropFires = (tables: TableSet, projectId: string): void => {
  for (const id of drop(tables.fires, (fire) => fire.projectId === projectId)) {
    const request = tables.requests.get(id);
    tables.requests.delete(id);
    if (request !== undefined) tables.moveCounters(request.accountId, { requestBytes: -request.body.length });
  }
};

const removeAll = (tables: TableSet, projectId: string): void => {
  const isOwn = (row: { readonly projectId: string | null }) => row.projectId === projectId;
  dropFires(tables, projectId);
  const requests = drop(tables.changeRequests, ({ record }) => isOwn(record));
  for (const id of requests) tables.changeRequestOutbox.forget(id);
  drop(tables.remarks, ({ requestId }) => requests.includes(requestId));
  for (const id of requests) tables.reviewers.delete(id);
  drop(tables.uploads, isOwn);
  const actors = [...dropSessions(tables, projectId), ...requests];
  const builds = drop(tables.environmentBuilds, ({ record }) => isOwn(record));
  for (const id of builds) tables.environmentBuildOutbox.forget(id);
  const webhooks = drop(tables.outboundWebhooks, ({ record }) => isOwn(record));
  drop(tables.outboundDeliveries, ({ record }) => webhooks.includes(record.webhookId));
  const tokens = drop(tables.tokens, isOwn);
  for (const id of tokens) tables.sayEnded(id);
  drop(tables.tokens, ({ openedBy }) => openedBy !== null && tokens.includes(openedBy));
  drop(tables.signInLinks, ({ tokenId }) => tokens.includes(tokenId));
  const all: Map<string, { readonly projectId: string | null }>[] = [
    tables.connectorCredentials,
    tables.connectorGrants,
    tables.connectorFlows,
    tables.connectorCatalogues,
    tables.executorCalls,
    tables.approvals,
    tables.warmSandboxes,
    tables.cloneCredentials,
  ];
  for (const rows of all) drop(rows, isOwn);
  drop(tables.deviceLogins, ({ decision }) => decision?.grant?.projectId === projectId);
  const byProject: Map<string, unknown>[] = [
    tables.credentials,
    tables.lastFired,
    tables.cursors,
    tables.secrets,
    tables.members,
    tables.usage,
    tables.events.horizons,
  ];
  for (const rows of byProject) rows.delete(projectId);
  for (const [id, row] of tables.invitations)
    tables.invitations.set(id, { ...row, projects: row.projects.filter((granted) => !isOwn(granted)) });
  tables.refusals = tables.refusals.filter((row) => !isOwn(row));
  tables.events.rows = tables.events.rows.filter((row) => !isOwn(row));
  drop(tables.transitions, (_, key) =>
    [...actors, ...builds, projectId].some((id) => key.split("/").slice(1).includes(id)),
  );
  tables.projects.delete(projectId);
  tables.deletedProjects.add(projectId);
};

const isDue = ({ deletesAt }: Project, now: number): boolean => deletesAt !== null && deletesAt <= now;

export const layer = Layer.effect(
  ProjectDeletions,
  Effect.map(Tables, (tables) => ({
    begin: (id, times) => Effect.sync(() => begin(tables, id, times)),
    restore: (id, now) => Effect.sync(() => restore(tables, id, now)),
    unwantedSessions: Effect.sync(() =>
      [...tables.sessions.values()]
        .filter(
          ({ record, snapshot }) =>
            isLive(record.status) &&
            snapshot.context.ending === null &&
            tables.projects.get(record.projectId)?.record.status === "deleted",
        )
        .slice(0, UNWANTED_MAX)
        .map(({ record: { id, projectId } }) => ({ id, projectId })),
    ),
    due: (now) =>
      Effect.sync(() =>
        [...tables.projects.values()]
          .map(({ record }) => record)
          .filter((project) => isDue(project, now))
          .toSorted((a, b) => (a.deletesAt ?? 0) - (b.deletesAt ?? 0) || (a.id < b.id ? -1 : 1)),
      ),
    remove: (id, now) =>
      Effect.sync(() => {
        const project = tables.projects.get(id)?.record;
        if (project === undefined) return "gone";
        if (!isDue(project, now) || isBusy(tables, id)) return "waits";
        removeAll(tables, id);
        return "removed";
      }),
    gone: Effect.sync(() => [...tables.deletedProjects].toSorted()),
  })),
);
