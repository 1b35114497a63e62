/** Sandboxes that wait for a session, in memory: see postgres/sessions/warm-sandboxes.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { GivenSecrets } from "../../../../src/store/ports/sessions/sandboxes.ts";
import {
  ABANDONED_MS,
  WarmSandboxes,
  type WarmSandbox,
} from "../../../../src/store/ports/sessions/warm-sandboxes.ts";
import { Tables, type TableSet } from "../tables.ts";

export interface WarmSandboxRow extends WarmSandbox {
  readonly secrets: GivenSecrets | null;
  readonly claim: { readonly sessionId: string; readonly at: number } | null;
}

type Api = WarmSandboxes["Service"];

const oldestFirst = (one: WarmSandbox, other: WarmSandbox): number =>
  one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1);

const give = (tables: TableSet, request: Parameters<Api["claim"]>[0]) => {
  const { projectId, sessionId, nodeId, isPersons, now } = request;
  const rows = [...tables.warmSandboxes.values()];
  const held = rows.find((row) => row.claim?.sessionId === sessionId);
  if (held !== undefined)
    return tables.sessions.get(sessionId)?.record.sandboxId === held.id ? null : held.id;
  const [oldest] = rows
    .filter((row) => row.projectId === projectId && row.nodeId === nodeId)
    .filter((row) => row.claim === null && row.recipe !== null && (isPersons || row.wantedBy !== "person"))
    .toSorted(oldestFirst);
  if (oldest === undefined) return null;
  tables.warmSandboxes.set(oldest.id, { ...oldest, claim: { sessionId, at: now } });
  return oldest.id;
};

const isInUse = (tables: TableSet, { id, claim }: WarmSandboxRow): boolean => {
  const session = claim === null ? undefined : tables.sessions.get(claim.sessionId)?.record;
  return session?.status === "provisioning" && (session.sandboxId ?? id) === id;
};

const keep = (tables: TableSet, { projectId, nodeId, until }: Parameters<Api["keep"]>[0]): boolean => {
  const [kept] = [...tables.warmSandboxes.values()]
    .filter((row) => row.projectId === projectId && row.nodeId === nodeId && row.claim === null)
    .toSorted(
      (one, other) =>
        (other.wantedUntil ?? Infinity) - (one.wantedUntil ?? Infinity) || oldestFirst(one, other),
    );
  if (kept === undefined) return false;
  const wantedUntil = kept.wantedUntil === null ? null : Math.max(kept.wantedUntil, until);
  tables.warmSandboxes.set(kept.id, { ...kept, wantedUntil });
  return true;
};

const remove = (tables: TableSet, id: string): boolean =>
  tables.warmSandboxes.get(id)?.claim === null && tables.warmSandboxes.delete(id);

export const layer = Layer.effect(
  WarmSandboxes,
  Effect.map(Tables, (tables): Api => {
    const unclaimed = (holds: (row: WarmSandboxRow) => boolean) =>
      [...tables.warmSandboxes.values()].filter((row) => row.claim === null && holds(row));
    return {
      add: ({ atMost, ...added }) =>
        Effect.sync(() => {
          if (!tables.projects.has(added.projectId)) return false;
          const others = unclaimed(
            ({ projectId, nodeId }) => projectId === added.projectId && nodeId === added.nodeId,
          );
          if (others.length >= atMost) return false;
          tables.warmSandboxes.set(added.id, { ...added, recipe: null, secrets: null, claim: null });
          return true;
        }),
      ready: (id, made) =>
        Effect.sync(() => {
          const row = tables.warmSandboxes.get(id);
          if (row === undefined) return false;
          tables.warmSandboxes.set(id, { ...row, ...made });
          return true;
        }),
      claim: (request) => Effect.sync(() => give(tables, request)),
      unclaimed: (nodeId) =>
        Effect.sync(() => unclaimed((row) => row.nodeId === nodeId).toSorted(oldestFirst)),
      countReady: (projectId) =>
        Effect.sync(() => {
          const ready = unclaimed((row) => row.projectId === projectId && row.recipe !== null);
          const forTriggers = ready.filter(({ wantedBy }) => wantedBy === "trigger");
          return { ready: ready.length, forTriggers: forTriggers.length };
        }),
      keep: (request) => Effect.sync(() => keep(tables, request)),
      remove: (id) => Effect.sync(() => remove(tables, id)),
      abandoned: (nodeId, now) =>
        Effect.sync(() => {
          const left = [...tables.warmSandboxes.values()].filter(
            (row) =>
              row.nodeId === nodeId &&
              row.claim !== null &&
              Math.abs(now - row.claim.at) > ABANDONED_MS &&
              !isInUse(tables, row),
          );
          for (const { id } of left) tables.warmSandboxes.delete(id);
          return left.map(({ id }) => id);
        }),
    };
  }),
);
