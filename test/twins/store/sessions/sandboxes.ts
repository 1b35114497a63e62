/** Sandboxes in memory: see postgres/sessions/sandboxes.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../../../../src/machines/sandbox.ts";
import {
  bootStartedEvent,
  environmentNotedEvent,
  sandboxStatusEvent,
} from "../../../../src/store/event-rows.ts";
import { StoreError } from "../../../../src/store/ports/journal.ts";
import {
  Sandboxes,
  type NotedEnvironment,
  type OutdatedSandbox,
  type Sandbox,
} from "../../../../src/store/ports/sessions/sandboxes.ts";
import { sandboxColumns } from "../../../../src/store/session-columns.ts";
import { firstTransition } from "../../../../src/machines/transition.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { Tables, type SandboxRow, type TableSet } from "../tables.ts";

type OpenRequest = Parameters<(typeof Sandboxes)["Service"]["open"]>[0];

const memoryOf = (tables: TableSet) =>
  makeActorMemory<SandboxSnapshot, SandboxEvent, SandboxCommand, SandboxRow>(tables, {
    kind: "sandbox",
    rows: tables.sandboxes,
    outbox: tables.sandboxOutbox,
    step: (row, change) => Effect.succeed({ ...row, record: { ...row.record, ...sandboxColumns(change) } }),
    finish: ({ record: { sessionId, endedAt } }, change) => {
      const { id, before, after, now } = change;
      const projectId = tables.sessions.get(sessionId)?.record.projectId;
      if (endedAt !== null) tables.sayEnded(sessionId);
      if (before.state === after.state || projectId === undefined) return;
      const moved = { ...sandboxColumns(change), sandboxId: id, previous: before.state };
      tables.events.append([sandboxStatusEvent({ projectId, sessionId, at: now }, moved)]);
    },
  });

const ofSession = (tables: TableSet, sessionId: string): readonly Sandbox[] =>
  [...tables.sandboxes.values()]
    .map(({ record }) => record)
    .filter((record) => record.sessionId === sessionId);

const open = Effect.fnUntraced(function* (tables: TableSet, request: OpenRequest) {
  const { id, sessionId, snapshot, commands, now } = request;
  if (tables.sandboxes.has(id)) return;
  const session = tables.sessions.get(sessionId)?.record;
  if (session?.status !== "provisioning" || session.sandboxId !== id) return;
  if (ofSession(tables, sessionId).some((other) => tables.isSandboxLive(other.id))) {
    const cause = new Error("the session has a live sandbox");
    return yield* new StoreError({ operation: "sandboxes.open", cause });
  }
  const warm = tables.warmSandboxes.get(id);
  tables.warmSandboxes.delete(id);
  tables.sandboxes.set(id, {
    record: {
      id,
      sessionId,
      provider: request.provider,
      nodeId: warm?.nodeId ?? request.nodeId,
      image: null,
      environment: null,
      warmRecipe: warm?.recipe ?? null,
      status: snapshot.state,
      failure: null,
      bootDeadlineAt: request.bootDeadlineAt,
      createdAt: now,
      bootStartedAt: null,
      activeAt: null,
      endedAt: null,
    },
    snapshot,
    version: 1,
    secrets: warm?.secrets ?? null,
  });
  for (const token of [
    { id, kind: "sandbox", hash: request.serviceKeyHash },
    { id: request.cliToken.id, kind: "access", hash: request.cliToken.hash },
  ] as const) {
    tables.tokens.set(token.id, {
      ...token,
      accountId: session.accountId,
      userId: session.createdBy,
      projectId: session.projectId,
      sessionId,
      sandboxId: id,
      name: `session ${sessionId}`,
      origin: session.origin,
      createdAt: now,
      expiresAt: null,
      lastUsedAt: null,
      revokedAt: null,
      openedBy: null,
      identityId: null,
      address: null,
      userAgent: null,
    });
  }
  tables.sandboxOutbox.append(id, commands, now);
  tables.keep({ kind: "sandbox", id }, firstTransition(request, { now }), 1);
  tables.events.append([
    sandboxStatusEvent(
      { projectId: session.projectId, sessionId, at: now },
      { sandboxId: id, status: snapshot.state, previous: null },
    ),
  ]);
});

const beginBoot = (
  tables: TableSet,
  id: string,
  { now, deadlineAt }: { readonly now: number; readonly deadlineAt: number },
): boolean => {
  const row = tables.sandboxes.get(id);
  const session = row === undefined ? undefined : tables.sessions.get(row.record.sessionId)?.record;
  if (row === undefined || session === undefined || row.record.status !== "provisioning") return false;
  const record: Sandbox = { ...row.record, bootStartedAt: now, bootDeadlineAt: deadlineAt };
  tables.sandboxes.set(id, { ...row, record });
  tables.events.append([
    bootStartedEvent({ projectId: session.projectId, sessionId: session.id, at: now }, id),
  ]);
  return true;
};

const noteEnvironment = (tables: TableSet, id: string, { now, buildId, isStale }: NotedEnvironment): void => {
  const row = tables.sandboxes.get(id);
  const session = row === undefined ? undefined : tables.sessions.get(row.record.sessionId)?.record;
  if (row === undefined || session === undefined) return;
  const { environment } = row.record;
  if (environment?.buildId === buildId && environment.isStale === isStale) return;
  tables.sandboxes.set(id, { ...row, record: { ...row.record, environment: { buildId, isStale } } });
  const place = { projectId: session.projectId, sessionId: session.id, at: now };
  tables.events.append([environmentNotedEvent(place, { id, buildId, isStale })]);
};

const outdated = (tables: TableSet, nodeId: string): readonly OutdatedSandbox[] =>
  [...tables.sandboxes.values()].flatMap(({ record, secrets: given }) => {
    const session = tables.sessions.get(record.sessionId)?.record;
    if (record.status !== "active" || record.nodeId !== nodeId || given === null || session === undefined)
      return [];
    const { id, accountId, projectId, triggerSlug, createdBy, parentSessionId, agentName } = session;
    const revision = tables.projects.get(projectId)?.secretsRevision;
    return revision === given.revision
      ? []
      : [
          {
            id: record.id,
            session: { id, accountId, projectId, triggerSlug, createdBy, parentSessionId, agentName },
            given,
          },
        ];
  });

export const layer = Layer.effect(
  Sandboxes,
  Effect.map(Tables, (tables) => ({
    ...memoryOf(tables),
    open: (request) => open(tables, request),
    get: (id) => Effect.sync(() => tables.sandboxes.get(id)?.record ?? null),
    newest: (sessionId) =>
      Effect.sync(() => {
        const newestFirst = ofSession(tables, sessionId).toSorted(
          (a, b) => b.createdAt - a.createdAt || (b.id < a.id ? -1 : 1),
        );
        return newestFirst[0] ?? null;
      }),
    beginBoot: (id, boot) => Effect.sync(() => beginBoot(tables, id, boot)),
    forgetWarmth: (id) =>
      Effect.sync(() => {
        const row = tables.sandboxes.get(id);
        if (row !== undefined)
          tables.sandboxes.set(id, { ...row, record: { ...row.record, warmRecipe: null } });
      }),
    noteImage: (id, image) =>
      Effect.sync(() => {
        const row = tables.sandboxes.get(id);
        if (row !== undefined) tables.sandboxes.set(id, { ...row, record: { ...row.record, image } });
      }),
    noteEnvironment: (id, noted) => Effect.sync(() => noteEnvironment(tables, id, noted)),
    noteSecrets: (id, former, given) =>
      Effect.sync(() => {
        const row = tables.sandboxes.get(id);
        if (row === undefined || (row.secrets?.revision ?? null) !== former) return false;
        tables.sandboxes.set(id, { ...row, secrets: given });
        return true;
      }),
    outdated: (nodeId) => Effect.sync(() => outdated(tables, nodeId)),
    unheld: (ids) =>
      Effect.sync(() =>
        ids.filter((id) => {
          const ended = tables.sandboxes.get(id)?.record.endedAt !== null && !tables.warmSandboxes.has(id);
          return ended && tables.sandboxOutbox.of(id).length === 0;
        }),
      ),
  })),
);
