/** Project secrets in memory: see postgres/projects/secrets.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Fenced } from "../../../../src/store/ports/journal.ts";
import {
  Secrets,
  type OwnedSecret,
  type PreviousSecret,
} from "../../../../src/store/ports/projects/secrets.ts";
import { Tables, type SecretRow, type TableSet } from "../tables.ts";

const KEY_CHECK = "master_key_check";

/** The secrets that have a value, by name. */
const setOf = (tables: TableSet, projectId: string): readonly SecretRow[] =>
  [...(tables.secrets.get(projectId)?.values() ?? [])]
    .filter(({ envelope }) => envelope !== null)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));

const sealed = (projectId: string, row: SecretRow): readonly OwnedSecret[] => {
  const { name, version, envelope, service } = row;
  return envelope === null ? [] : [{ projectId, name, version, envelope, service }];
};

const bumpRevision = (tables: TableSet, projectId: string): void => {
  const row = tables.projects.get(projectId);
  if (row !== undefined) tables.projects.set(projectId, { ...row, secretsRevision: row.secretsRevision + 1 });
  tables.markChanged(projectId);
};

const write = (tables: TableSet, projectId: string, row: SecretRow): void => {
  const secrets = tables.secrets.get(projectId) ?? new Map<string, SecretRow>();
  tables.secrets.set(projectId, secrets.set(row.name, row));
  bumpRevision(tables, projectId);
};

/** The former value, if it still verifies webhooks beside the new one. */
const previousOf = (former: SecretRow | undefined, until: number | undefined): PreviousSecret | null =>
  former === undefined || former.envelope === null || until === undefined
    ? null
    : { version: former.version, envelope: former.envelope, until };

const prunePrevious = (tables: TableSet, now: number): number => {
  let removed = 0;
  for (const [projectId, secrets] of tables.secrets) {
    const ended = [...secrets.values()].filter(({ previous }) => previous !== null && previous.until <= now);
    for (const row of ended) secrets.set(row.name, { ...row, previous: null });
    if (ended.length > 0) tables.markChanged(projectId);
    removed += ended.length;
  }
  return removed;
};

const put: (tables: TableSet) => (typeof Secrets)["Service"]["put"] = (tables) => (secret, by) =>
  Effect.suspend(() => {
    const { projectId, name, version, envelope } = secret;
    const former = tables.secrets.get(projectId)?.get(name);
    if (version !== (former?.version ?? 0) + 1) return Effect.fail(new Fenced({ id: name }));
    const isNew = former === undefined || former.envelope === null;
    write(tables, projectId, {
      name,
      version,
      envelope: Uint8Array.from(envelope),
      createdAt: isNew ? by.now : former.createdAt,
      updatedAt: by.now,
      updatedBy: by.userId,
      service: by.service ?? (!isNew && former.service),
      previous: previousOf(former, by.previousUntil),
    });
    return Effect.succeed(isNew);
  });

export const layer = Layer.effect(
  Secrets,
  Effect.map(Tables, (tables) => {
    const rowOf = (projectId: string, name: string) => tables.secrets.get(projectId)?.get(name);
    return {
      list: (projectId) =>
        Effect.sync(() => ({
          secrets: setOf(tables, projectId).map(
            ({ name, createdAt, updatedAt, updatedBy, service, previous }) => ({
              name,
              createdAt,
              updatedAt,
              updatedBy,
              service,
              previousUntil: previous?.until ?? null,
            }),
          ),
          revision: tables.projects.get(projectId)?.secretsRevision ?? 0,
        })),
      sealed: (projectId) =>
        Effect.sync(() => setOf(tables, projectId).flatMap((row) => sealed(projectId, row))),
      current: (projectId) =>
        Effect.sync(() => ({
          sealed: setOf(tables, projectId).flatMap((row) => sealed(projectId, row)),
          revision: tables.projects.get(projectId)?.secretsRevision ?? 0,
        })),
      get: (projectId, name) =>
        Effect.sync(() => {
          const row = rowOf(projectId, name);
          return row === undefined ? null : (sealed(projectId, row)[0] ?? null);
        }),
      nextVersion: (projectId, name) => Effect.sync(() => (rowOf(projectId, name)?.version ?? 0) + 1),
      put: put(tables),
      remove: (projectId, name, now) =>
        Effect.sync(() => {
          const row = rowOf(projectId, name);
          if (row === undefined || row.envelope === null) return false;
          write(tables, projectId, { ...row, envelope: null, previous: null, updatedAt: now });
          return true;
        }),
      masterKey: Effect.sync(() => {
        const check = tables.settings.get(KEY_CHECK);
        return check === undefined ? null : { check, former: null };
      }),
      prunePrevious: (now) => Effect.sync(() => prunePrevious(tables, now)),
      keyCheck: (value) =>
        Effect.sync(() => {
          const known = tables.settings.get(KEY_CHECK) ?? value;
          tables.settings.set(KEY_CHECK, known);
          return known;
        }),
    };
  }),
);
