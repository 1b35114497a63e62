/** Credentials and catalogues of connectors in memory: see postgres/connectors.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Connectors, type CatalogueKey, type StoredCatalogue } from "../ports/connectors.ts";
import { Fenced } from "../ports/journal.ts";
import type { ConnectorCredentialRow } from "./connector-rows.ts";
import { Tables, type TableSet } from "./tables.ts";

const keyOf = (projectId: string, slug: string): string => `${projectId} ${slug}`;

const bySlug = <A extends { readonly slug: string }>(rows: Iterable<A>): readonly A[] =>
  [...rows].toSorted((a, b) => (a.slug < b.slug ? -1 : 1));

/** The catalogue of this server, or an empty one in its place. */
const sameServer = (tables: TableSet, { projectId, slug, url }: CatalogueKey): StoredCatalogue => {
  const row = tables.connectorCatalogues.get(keyOf(projectId, slug));
  return row?.url === url ? row : { slug, url, latest: null, accepted: null, failure: null, triedAt: 0 };
};

const put = (tables: TableSet, projectId: string, row: StoredCatalogue): void => {
  if (tables.projects.has(projectId))
    tables.connectorCatalogues.set(keyOf(projectId, row.slug), { ...row, projectId });
};

const shown = ({ projectId: _, ...row }: StoredCatalogue & { readonly projectId: string }): StoredCatalogue =>
  row;

const credentialsOf = (tables: TableSet) => {
  const rowOf = (projectId: string, slug: string) => tables.connectorCredentials.get(keyOf(projectId, slug));
  const set = (row: ConnectorCredentialRow) =>
    tables.connectorCredentials.set(keyOf(row.projectId, row.slug), row);
  return {
    credentials: (projectId) =>
      Effect.sync(() =>
        bySlug(tables.connectorCredentials.values())
          .filter((row) => row.projectId === projectId && row.envelope !== null)
          .map(({ slug, origin, kind, updatedAt, updatedBy }) => ({
            slug,
            origin,
            kind,
            updatedAt,
            updatedBy,
          })),
      ),
    credential: (projectId, slug) =>
      Effect.sync(() => {
        const row = rowOf(projectId, slug);
        if (row === undefined || row.envelope === null) return null;
        const { version, origin, kind, envelope } = row;
        return { projectId, slug, version, origin, kind, envelope };
      }),
    nextVersion: (projectId, slug) => Effect.sync(() => (rowOf(projectId, slug)?.version ?? 0) + 1),
    putCredential: (sealed, { userId, now }) =>
      Effect.suspend(() => {
        const { projectId, slug, version } = sealed;
        if (version !== (rowOf(projectId, slug)?.version ?? 0) + 1)
          return Effect.fail(new Fenced({ id: slug }));
        set({ ...sealed, updatedAt: now, updatedBy: userId });
        return Effect.void;
      }),
    removeCredential: (projectId, slug, now) =>
      Effect.sync(() => {
        const row = rowOf(projectId, slug);
        if (row === undefined || row.envelope === null) return false;
        set({ ...row, envelope: null, updatedAt: now });
        return true;
      }),
  } satisfies Partial<(typeof Connectors)["Service"]>;
};

export const layer = Layer.effect(
  Connectors,
  Effect.map(Tables, (tables) => ({
    ...credentialsOf(tables),
    catalogues: (projectId) =>
      Effect.sync(() =>
        bySlug(tables.connectorCatalogues.values())
          .filter((row) => row.projectId === projectId)
          .map(shown),
      ),
    catalogue: (projectId, slug) =>
      Effect.sync(() => {
        const row = tables.connectorCatalogues.get(keyOf(projectId, slug));
        return row === undefined ? null : shown(row);
      }),
    saw: (key, seen) =>
      Effect.sync(() =>
        put(tables, key.projectId, {
          ...sameServer(tables, key),
          latest: seen,
          failure: null,
          triedAt: seen.at,
        }),
      ),
    failed: (key, { failure, now }) =>
      Effect.sync(() => put(tables, key.projectId, { ...sameServer(tables, key), failure, triedAt: now })),
    accept: (key, { pin, userId, now }) =>
      Effect.sync(() => {
        const row = sameServer(tables, key);
        if (row.latest?.pin !== pin) return false;
        const accepted = { catalogue: row.latest.catalogue, pin, at: now, by: userId };
        put(tables, key.projectId, { ...row, accepted });
        return true;
      }),
    outdated: (before, limit) =>
      Effect.sync(() =>
        [...tables.connectorCatalogues.values()]
          .filter(({ triedAt }) => triedAt < before)
          .toSorted((a, b) => a.triedAt - b.triedAt)
          .slice(0, limit)
          .map(({ projectId, slug }) => ({ projectId, slug })),
      ),
    forget: (projectId, slug) =>
      Effect.sync(() => {
        tables.connectorCatalogues.delete(keyOf(projectId, slug));
      }),
  })),
);
