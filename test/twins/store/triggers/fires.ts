/** Reads the ledger of fires and the queue in memory: see postgres/triggers/fires.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { hasRunFailed, runOutcome } from "../../../../src/domain/session/run-outcome.ts";
import { Fires, type Fire, type ShownFire } from "../../../../src/store/ports/triggers/fires.ts";
import { queueInOrder, requesterOf } from "./queue.ts";
import { pageFrom } from "../pages.ts";
import { fireOf, Tables, type TableSet } from "../tables.ts";

const newestFirst = (a: Fire, b: Fire): number => b.receivedAt - a.receivedAt || (b.id < a.id ? -1 : 1);

const promptOf = (tables: TableSet, id: string): string | null => {
  const session = [...tables.sessions.values()].find(({ record }) => record.fireId === id);
  const waiting = tables.queue.find(({ fireId }) => fireId === id);
  return (
    session?.record.initialPrompt ??
    waiting?.session.initialPrompt ??
    waiting?.session.firstMessage?.text ??
    null
  );
};

const removeRequest = (tables: TableSet, fireId: string): void => {
  const request = tables.requests.get(fireId);
  if (request === undefined) return;
  tables.requests.delete(fireId);
  tables.moveCounters(request.accountId, { requestBytes: -request.body.byteLength });
};

type Limits = Parameters<(typeof Fires)["Service"]["prune"]>[0];

const prune = (tables: TableSet, { before, requestBytes }: Limits): number => {
  let removed = 0;
  for (const [fireId, { accountId }] of tables.requests) {
    if ((tables.accounts.get(accountId)?.storedRequestBytes ?? 0) <= requestBytes) continue;
    removeRequest(tables, fireId);
    removed += 1;
  }
  for (const { id, receivedAt, status } of tables.fires.values()) {
    if (receivedAt >= before || status === "queued") continue;
    removeRequest(tables, id);
    tables.fires.delete(id);
    removed += 1;
  }
  return removed;
};

const isByHand = ({ kind, replayOf, verifiedWith }: Fire): boolean =>
  kind === "manual" || (replayOf !== null && verifiedWith === null);

const shown = (tables: TableSet, fire: Fire): ShownFire => {
  const session = tables.sessions.get(fire.sessionId ?? "")?.record;
  if (session === undefined) return { ...fire, outcome: null, sessionName: null, startedBy: null };
  const { status, failure, stopReason, lastTurn, id, name, createdBy } = session;
  const turn = tables.conversations.get(id)?.conversation.turn.state ?? "idle";
  const failureCode = failure?.code ?? null;
  return {
    ...fire,
    outcome: runOutcome({ status, failureCode, stopReason, lastTurn, isAtWork: turn !== "idle" }),
    sessionName: name,
    startedBy: isByHand(fire) ? (tables.users.get(createdBy)?.name ?? null) : null,
  };
};

const isFailed = (tables: TableSet, { status, sessionId }: Fire): boolean => {
  const session = tables.sessions.get(sessionId ?? "")?.record;
  return status === "failed" || (session !== undefined && hasRunFailed(session));
};

const TITLE_LENGTH = 200;

const personOf = (tables: TableSet, id: string) => {
  const user = tables.users.get(id);
  return user === undefined ? null : { id, name: user.name };
};

export const layer = Layer.effect(
  Fires,
  Effect.map(Tables, (tables) => {
    const ofProject = (projectId: string) =>
      [...tables.fires.values()].filter((row) => row.projectId === projectId).map(fireOf);
    return {
      get: (id) =>
        Effect.sync(() => {
          const row = tables.fires.get(id);
          return row === undefined ? null : shown(tables, fireOf(row));
        }),
      list: (projectId, request) =>
        Effect.suspend(() => {
          const { slug, status, hasFailed = false } = request;
          const listed = ofProject(projectId).filter(
            (fire) =>
              fire.kind !== "session" &&
              (slug === null || fire.triggerSlug === slug) &&
              (status === null || fire.status === status) &&
              (!hasFailed || isFailed(tables, fire)),
          );
          const page = pageFrom(listed, request, ({ receivedAt, id }) => ({ at: receivedAt, id }));
          return Effect.map(page, ({ items, nextCursor }) => ({
            items: items.map((fire) => shown(tables, fire)),
            nextCursor,
          }));
        }),
      request: (id) =>
        Effect.sync(() => {
          const stored = tables.requests.get(id);
          if (stored === undefined) return null;
          const { accountId: _account, ...request } = stored;
          return request;
        }),
      prompt: (id) => Effect.sync(() => promptOf(tables, id)),
      requester: (id) =>
        Effect.sync(() => {
          const row = tables.queue.find(({ fireId }) => fireId === id);
          return row === undefined ? null : requesterOf(row);
        }),
      prune: (limits) => Effect.sync(() => prune(tables, limits)),
      lastBySlug: (projectId, slugs) =>
        Effect.sync(() => {
          const oldestFirst = ofProject(projectId)
            .filter(({ triggerSlug, status }) => slugs.includes(triggerSlug ?? "") && status !== "duplicate")
            .toSorted((a, b) => newestFirst(b, a));
          return new Map(oldestFirst.map((fire) => [fire.triggerSlug ?? "", shown(tables, fire)]));
        }),
      queue: ({ accountId, userId }) =>
        Effect.sync(() =>
          queueInOrder(tables, accountId)
            .map(({ fireId, projectId, triggerSlug, kind, session, queuedAt, expiresAt }, index) => ({
              fireId,
              projectId,
              triggerSlug,
              kind,
              title: session.name ?? session.initialPrompt?.slice(0, TITLE_LENGTH) ?? null,
              files: session.firstMessage?.attachments.length ?? 0,
              person: kind === "session" ? personOf(tables, session.createdBy) : null,
              queuedAt,
              expiresAt,
              position: index + 1,
            }))
            .filter(({ projectId }) => userId === null || tables.roleOf(userId, projectId) !== null),
        ),
      position: (accountId, id) =>
        Effect.sync(() => {
          const at = queueInOrder(tables, accountId).findIndex(({ fireId }) => fireId === id);
          return at === -1 ? null : at + 1;
        }),
    };
  }),
);
