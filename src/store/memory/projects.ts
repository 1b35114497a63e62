/** Projects in memory: see postgres/projects.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Projects } from "../port.ts";
import type { NewProject, Project, ProjectUpdate } from "../records.ts";
import { pageFrom, Tables, type TableSet } from "./tables.ts";

const insert = (tables: TableSet, { now, ...project }: NewProject): Project => {
  const record: Project = {
    ...project,
    status: "active",
    triggersPaused: false,
    manifest: { commit: null, syncedAt: null, error: null },
    createdAt: now,
    updatedAt: now,
  };
  const row = { record, secretsRevision: 0, changeRequests: 0, drainedTurn: 0, manifest: null };
  tables.projects.set(record.id, row);
  return record;
};

/** An archived project starts nothing more: what waits is cancelled. */
const cancelWaiting = (tables: TableSet, projectId: string): void => {
  for (const { fireId } of tables.queue.filter((row) => row.projectId === projectId)) {
    const fire = tables.fires.get(fireId);
    if (fire !== undefined) {
      tables.fires.set(fireId, { ...fire, status: "cancelled", reason: "project_archived" });
    }
  }
  tables.queue = tables.queue.filter((row) => row.projectId !== projectId);
};

const update = (tables: TableSet, id: string, edit: ProjectUpdate & { readonly now: number }) => {
  const row = tables.projects.get(id);
  if (row === undefined) return null;
  const { now, ...change } = edit;
  const record: Project = { ...row.record, ...change, updatedAt: now };
  tables.projects.set(id, { ...row, record });
  if (change.status === "archived") cancelWaiting(tables, id);
  return record;
};

const recordManifest: (tables: TableSet) => (typeof Projects)["Service"]["recordManifest"] =
  (tables) =>
  (id, { commit, text, error, now }) =>
    Effect.sync(() => {
      const row = tables.projects.get(id);
      if (row === undefined) return;
      tables.projects.set(id, {
        ...row,
        record: { ...row.record, manifest: { commit, syncedAt: now, error } },
        // A reading that did not parse leaves the last good one standing.
        manifest: text === null || commit === null ? row.manifest : { commit, text },
      });
    });

export const layer = Layer.effect(
  Projects,
  Effect.map(Tables, (tables) => {
    const records = () => [...tables.projects.values()].map(({ record }) => record);
    return {
      create: (project) => Effect.sync(() => insert(tables, project)),
      get: (id) => Effect.sync(() => tables.projects.get(id)?.record ?? null),
      list: (accountId, request) =>
        Effect.suspend(() => {
          const { onlyId } = request;
          const listed = records().filter(
            (record) => record.accountId === accountId && (onlyId === null || record.id === onlyId),
          );
          return pageFrom(listed, request, ({ createdAt, id }) => ({ at: createdAt, id }));
        }),
      update: (id, change, now) => Effect.sync(() => update(tables, id, { ...change, now })),
      recordManifest: recordManifest(tables),
      manifest: (id) => Effect.sync(() => tables.projects.get(id)?.manifest ?? null),
      active: Effect.sync(() =>
        records()
          .filter(({ status }) => status === "active")
          .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)),
      ),
      lastFired: (id) => Effect.sync(() => new Map(tables.lastFired.get(id))),
    };
  }),
);
