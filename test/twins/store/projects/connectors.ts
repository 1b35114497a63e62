/** Credentials and catalogues of connectors in memory: see postgres/connectors/connectors.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  Connectors,
  type CatalogueKey,
  type StoredCatalogue,
} from "../../../../src/store/ports/connectors/connectors.ts";
import { Fenced } from "../../../../src/store/ports/journal.ts";
import type { CredentialHolder } from "../../../../src/domain/connector/connector-credential.ts";
import { keyOfHolder, leftOf, visibleTo, type ConnectorCredentialRow } from "./connector-rows.ts";
import { Tables, type TableSet } from "../tables.ts";

const keyOf = (projectId: string, slug: string): string => `${projectId} ${slug}`;

const bySlug = <A extends { readonly slug: string }>(rows: Iterable<A>): readonly A[] =>
  [...rows].toSorted((a, b) => (a.slug < b.slug ? -1 : 1));

/** The catalogue of this server, or an empty one in its place. */
const sameServer = (tables: TableSet, { projectId, slug, url }: CatalogueKey): StoredCatalogue => {
  const row = tables.connectorCatalogues.get(keyOf(projectId, slug));
  return row?.url === url ? row : { slug, url, latest: null, accepted: null, failure: null, triedAt: 0 };
};

const put = (tables: TableSet, projectId: string, row: StoredCatalogue): void => {
  if (!tables.projects.has(projectId)) return;
  tables.connectorCatalogues.set(keyOf(projectId, row.slug), { ...row, projectId });
  tables.toolsWaiting.wake(projectId);
};

const shown = ({ projectId: _, ...row }: StoredCatalogue & { readonly projectId: string }): StoredCatalogue =>
  row;

const credentialsOf = (tables: TableSet) => {
  const rowOf = (holder: CredentialHolder) => tables.connectorCredentials.get(keyOfHolder(holder));
  const set = (row: ConnectorCredentialRow) => tables.connectorCredentials.set(keyOfHolder(row), row);
  return {
    credentials: (projectId, personId) =>
      Effect.sync(() =>
        visibleTo([...tables.connectorCredentials.values()], { projectId, personId })
          .filter(({ envelope }) => envelope !== null)
          .map(({ slug, personId: of, origin, kind, updatedAt, updatedBy }) => ({
            slug,
            personId: of,
            origin,
            kind,
            updatedAt,
            updatedBy,
          })),
      ),
    credential: (holder) =>
      Effect.sync(() => {
        const row = rowOf(holder);
        if (row === undefined || row.envelope === null) return null;
        const { updatedAt: _at, updatedBy: _by, envelope, ...sealed } = row;
        return { ...sealed, envelope };
      }),
    nextVersion: (holder) => Effect.sync(() => (rowOf(holder)?.version ?? 0) + 1),
    putCredential: (sealed, { userId, now }) =>
      Effect.suspend(() => {
        if (sealed.version !== (rowOf(sealed)?.version ?? 0) + 1)
          return Effect.fail(new Fenced({ id: sealed.slug }));
        set({ ...sealed, updatedAt: now, updatedBy: userId });
        return Effect.void;
      }),
    removeCredential: (holder, now) =>
      Effect.sync(() => {
        const row = rowOf(holder);
        if (row === undefined || row.envelope === null) return false;
        set({ ...row, envelope: null, updatedAt: now });
        return true;
      }),
    leftCredentials: Effect.sync(() =>
      leftOf(
        tables,
        [...tables.connectorCredentials.values()].filter(({ envelope }) => envelope !== null),
      ),
    ),
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
    changed: (projectId) => tables.toolsWaiting.wait(projectId),
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
        tables.toolsWaiting.wake(projectId);
      }),
  })),
);
