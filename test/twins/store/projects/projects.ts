/** Projects in memory: see postgres/projects/projects.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { NEW_PROJECT_ROLES } from "../../../../src/domain/person/role.ts";
import {
  Projects,
  type NewProject,
  type Project,
  type ProjectState,
  type ProjectUpdate,
  type TriggerCursor,
} from "../../../../src/store/ports/projects/projects.ts";
import { manifestStaleEvent } from "../../../../src/store/event-rows.ts";
import { projectNameKey } from "../../../../src/domain/project/name.ts";
import { Taken } from "../../../../src/store/ports/errors.ts";
import { cancelWaiting } from "../triggers/queue.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

const insert = (
  tables: TableSet,
  { now, nodeId, credential, isGranted, ...project }: NewProject,
): Project => {
  const record: Project = {
    ...project,
    ...NEW_PROJECT_ROLES,
    approvalsRequired: 0,
    status: "active",
    deletesAt: null,
    triggersPaused: false,
    manifest: { commit: null, syncedAt: null, error: null },
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  tables.projects.set(record.id, {
    record,
    nodeId: nodeId ?? null,
    secretsRevision: 0,
    changeRequests: 0,
    drainedTurn: 0,
    formerStatus: null,
    manifest: null,
    manifestFailure: null,
    changedAt: 0,
  });
  if (credential !== undefined) tables.credentials.set(record.id, credential);
  if (isGranted === true) tables.grant(record.id, record.createdBy, "owner");
  tables.markChanged(record.id);
  return tables.projects.get(record.id)?.record ?? record;
};

/** Fails if another project of the account has the name. */
const requireFree = (
  tables: TableSet,
  { id, accountId }: Pick<Project, "id" | "accountId">,
  name: string,
) => {
  const key = projectNameKey(name);
  const isTaken = [...tables.projects.values()].some(
    ({ record }) => record.id !== id && record.accountId === accountId && projectNameKey(record.name) === key,
  );
  return isTaken ? Effect.fail(new Taken({ what: name })) : Effect.void;
};

const update = (tables: TableSet, id: string, edit: ProjectUpdate & { readonly now: number }) => {
  const row = tables.projects.get(id);
  if (row === undefined) return null;
  const { now, status = row.record.status, ...change } = edit;
  const isDeleted = row.record.status === "deleted";
  const record: Project = {
    ...row.record,
    ...change,
    status: isDeleted ? "deleted" : status,
    updatedAt: now,
  };
  tables.projects.set(id, { ...row, record });
  tables.markChanged(id);
  if (change.defaultRole !== undefined) tables.sayEnded(id);
  if (edit.status === "archived") cancelWaiting(tables, id, { reason: "project_archived", now });
  return tables.projects.get(id)?.record ?? null;
};

const replaceCredential = (
  tables: TableSet,
  id: string,
  { credential, now }: { readonly credential: Uint8Array | null; readonly now: number },
) => {
  const replaced = update(tables, id, { now });
  if (replaced === null) return null;
  if (credential === null) tables.credentials.delete(id);
  else tables.credentials.set(id, credential);
  return replaced;
};

const recordManifest: (tables: TableSet) => (typeof Projects)["Service"]["recordManifest"] =
  (tables) =>
  (id, { commit, good, failure, now }) =>
    Effect.sync(() => {
      const row = tables.projects.get(id);
      if (row === undefined) return;
      const former = row.record.manifest;
      const error = failure?.message ?? null;
      const isNews =
        former.syncedAt === null ||
        former.commit !== commit ||
        former.error !== error ||
        (good !== null && good.commit !== row.manifest?.commit);
      tables.projects.set(id, {
        ...row,
        record: { ...row.record, manifest: { commit, syncedAt: now, error } },
        // If a reading does not parse, the last good one stays.
        manifest: good ?? row.manifest,
        manifestFailure: failure,
      });
      if (isNews) tables.markChanged(id);
      if (isNews && error !== null && former.error === null)
        tables.events.append([manifestStaleEvent(id, commit, now)]);
    });

const states = (tables: TableSet, ids: readonly string[]): readonly ProjectState[] =>
  ids.flatMap((id) => {
    const row = tables.projects.get(id);
    if (row === undefined) return [];
    const secrets = [...(tables.secrets.get(id)?.values() ?? [])].flatMap(
      ({ name, version, envelope, service, previous }) =>
        envelope === null ? [] : [{ projectId: id, name, version, envelope, service, previous }],
    );
    const { record: project, manifest, manifestFailure } = row;
    const tier = tables.accounts.get(project.accountId)?.tier ?? "";
    return [{ project, tier, manifest, manifestFailure, secrets }];
  });

type KeepCursors = Parameters<(typeof Projects)["Service"]["keepCursors"]>[0];

const keepCursors = (tables: TableSet, { projectId, projectVersion, schedules, now }: KeepCursors) => {
  if (tables.projects.get(projectId)?.record.version !== projectVersion) return null;
  const former = tables.cursors.get(projectId);
  const kept = new Map<string, TriggerCursor>();
  for (const [slug, schedule] of schedules) {
    const cursor = former?.get(slug);
    kept.set(slug, cursor?.schedule === schedule ? cursor : { slug, schedule, accountedUntil: now });
  }
  tables.cursors.set(projectId, kept);
  return [...kept.values()];
};

/** Every reader waits for changes of any project. */
const ANY = "any";

export const layer = Layer.effect(
  Projects,
  Effect.map(Tables, (tables) => {
    const records = () => [...tables.projects.values()].map(({ record }) => record);
    return {
      create: (project) =>
        Effect.map(requireFree(tables, project, project.name), () => insert(tables, project)),
      get: (id) => Effect.sync(() => tables.projects.get(id)?.record ?? null),
      credential: (id) => Effect.sync(() => tables.credentials.get(id) ?? null),
      replaceCredential: (id, credential, now) =>
        Effect.sync(() => replaceCredential(tables, id, { credential, now })),
      list: ({ accountId, userId }, request) =>
        Effect.suspend(() => {
          const { onlyId } = request;
          const listed = records().filter(
            (record) =>
              record.accountId === accountId &&
              (onlyId === null || record.id === onlyId) &&
              (userId === null || tables.roleOf(userId, record.id) !== null),
          );
          return pageFrom(listed, request, ({ createdAt, id }) => ({ at: createdAt, id }));
        }),
      update: (id, change, now) =>
        Effect.suspend(() => {
          const row = tables.projects.get(id);
          const free =
            row === undefined || change.name === undefined
              ? Effect.void
              : requireFree(tables, row.record, change.name);
          return Effect.map(free, () => update(tables, id, { ...change, now }));
        }),
      unheld: (ids) => Effect.sync(() => ids.filter((id) => !tables.projects.has(id))),
      recordManifest: recordManifest(tables),
      states: (ids) => Effect.sync(() => states(tables, ids)),
      changedSince: (since) =>
        Effect.sync(() => {
          const from = Number(since ?? 0);
          const rows = [...tables.projects.values()].filter(({ changedAt }) => changedAt > from);
          return {
            changed: rows.map(({ record: { id, version } }) => ({ id, version })),
            since: String(tables.changes),
          };
        }),
      changed: tables.projectsWaiting.wait(ANY),
      keepCursors: (request) => Effect.sync(() => keepCursors(tables, request)),
      cursors: (of) =>
        Effect.sync(() =>
          of.flatMap(({ projectId, slug }) => {
            const cursor = tables.cursors.get(projectId)?.get(slug);
            return cursor === undefined ? [] : [{ projectId, ...cursor }];
          }),
        ),
      lastFired: (id) => Effect.sync(() => new Map(tables.lastFired.get(id))),
    };
  }),
);
