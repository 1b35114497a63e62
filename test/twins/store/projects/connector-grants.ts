/** Grants of connectors and sign-ins in memory: see postgres/connectors/connector-grants.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  ConnectorGrants,
  type Flow,
  type GrantKey,
  type NewFlow,
} from "../../../../src/store/ports/connectors/connector-grants.ts";
import { Fenced } from "../../../../src/store/ports/journal.ts";
import type { CredentialHolder } from "../../../../src/domain/connector/connector-credential.ts";
import {
  keyOfHolder,
  leftOf,
  visibleTo,
  type ConnectorFlowRow,
  type ConnectorGrantRow,
} from "./connector-rows.ts";
import { isAlive } from "../people/identity.ts";
import { Tables, type TableSet } from "../tables.ts";

type Service = (typeof ConnectorGrants)["Service"];

const shown = ({ lease: _, ...row }: ConnectorGrantRow) => row;

const FREE = { failure: null, failedAt: null, lease: null };

const grantsOf = (tables: TableSet) => {
  const rowOf = (holder: CredentialHolder) => tables.connectorGrants.get(keyOfHolder(holder));
  const set = (row: ConnectorGrantRow) => tables.connectorGrants.set(keyOfHolder(row), row);
  /** The row of this version. */
  const ofVersion = (key: GrantKey) => {
    const row = rowOf(key);
    return row?.version === key.version ? row : undefined;
  };
  return {
    list: (projectId, personId) =>
      Effect.sync(() =>
        visibleTo([...tables.connectorGrants.values()], { projectId, personId })
          .filter(({ status }) => status !== "removed")
          .map(shown),
      ),
    left: Effect.sync(() =>
      leftOf(
        tables,
        [...tables.connectorGrants.values()].filter(({ status }) => status !== "removed"),
      ),
    ),
    get: (holder) =>
      Effect.sync(() => {
        const row = rowOf(holder);
        return row === undefined ? null : shown(row);
      }),
    put: (grant, { userId, now }) =>
      Effect.suspend(() => {
        const { slug, version, envelope } = grant;
        if (version !== (rowOf(grant)?.version ?? 0) + 1) return Effect.fail(new Fenced({ id: slug }));
        const status = envelope === null ? "empty" : "held";
        set({ ...grant, ...FREE, status, grantedAt: now, grantedBy: userId, renewedAt: null });
        return Effect.void;
      }),
    lease: (key, { holder, now, until, failedAt }) =>
      Effect.sync(() => {
        const row = ofVersion(key);
        if (row === undefined || (row.status !== "empty" && row.status !== "held")) return "changed";
        if ((row.lease !== null && row.lease.until > now) || row.failedAt !== failedAt) return "held";
        set({ ...row, lease: { holder, until } });
        return "leased";
      }),
    renew: (grant, { holder, now }) =>
      Effect.sync(() => {
        const row = ofVersion({ ...grant, version: grant.version - 1 });
        if (row?.lease?.holder !== holder || row.origin !== grant.origin || row.kind !== grant.kind)
          return false;
        set({ ...row, ...grant, ...FREE, status: "held", renewedAt: now });
        return true;
      }),
    fail: (key, { holder, now, failure, isRefused }) =>
      Effect.sync(() => {
        const row = ofVersion(key);
        if (row?.lease?.holder !== holder) return false;
        const failed = { ...row, failure, failedAt: now, lease: null };
        set(isRefused ? { ...failed, version: row.version + 1, status: "refused", envelope: null } : failed);
        return true;
      }),
    remove: (holder, now) =>
      Effect.sync(() => {
        const row = rowOf(holder);
        if (row === undefined || row.status === "removed") return null;
        const version = row.version + 1;
        set({ ...row, ...FREE, version, status: "removed", envelope: null, grantedAt: now });
        return shown(row);
      }),
  } satisfies Partial<Service>;
};

const flowOf = ({ projectId, slug, userId, isOwn, origin, stateHash, envelope }: ConnectorFlowRow): Flow => ({
  projectId,
  slug,
  userId,
  isOwn,
  origin,
  stateHash,
  envelope,
});

const keyOfFlow = ({ projectId, slug, userId }: Pick<NewFlow, "projectId" | "slug" | "userId">) =>
  `${projectId} ${slug} ${userId}`;

const flowsOf = (tables: TableSet) => {
  const found = (fits: (row: ConnectorFlowRow) => boolean) => [...tables.connectorFlows.values()].find(fits);
  return {
    begin: ({ now, ...flow }) =>
      Effect.sync(() => {
        for (const [key, { expiresAt }] of tables.connectorFlows)
          if (expiresAt <= now) tables.connectorFlows.delete(key);
        tables.connectorFlows.set(keyOfFlow(flow), { ...flow, browserId: null, browserHash: null });
      }),
    open: ({ ticketHash, userId, browserId, browserHash, now }) =>
      Effect.sync(() => {
        const row = found((one) => one.ticketHash === ticketHash && one.userId === userId);
        if (row === undefined || row.browserHash !== null || row.expiresAt <= now) return null;
        tables.connectorFlows.set(keyOfFlow(row), { ...row, browserId, browserHash });
        return flowOf(row);
      }),
    take: ({ stateHash, browserHash, now }) =>
      Effect.sync(() => {
        const row = found((one) => one.stateHash === stateHash && one.browserHash === browserHash);
        const browser = tables.tokens.get(row?.browserId ?? "");
        if (row === undefined || row.expiresAt <= now) return null;
        if (browser === undefined || !isAlive(tables, browser, now)) return null;
        tables.connectorFlows.delete(keyOfFlow(row));
        return flowOf(row);
      }),
  } satisfies Partial<Service>;
};

export const layer = Layer.effect(
  ConnectorGrants,
  Effect.map(Tables, (tables) => ({ ...grantsOf(tables), ...flowsOf(tables) })),
);
