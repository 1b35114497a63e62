/** Builds of environments in memory: see postgres/projects/environment-builds.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  type EnvironmentBuildCommand,
  type EnvironmentBuildEvent,
  type EnvironmentBuildSnapshot,
  isLiveBuildState,
} from "../../../../src/machines/environment-build.ts";
import { firstTransition } from "../../../../src/machines/transition.ts";
import {
  buildEvent,
  buildInstants,
  logPiece,
  NEW_BUILD,
} from "../../../../src/store/environment-build-columns.ts";
import {
  BUILDS_KEPT,
  EnvironmentBuilds,
  type EnvironmentBuild,
  type NewBuild,
} from "../../../../src/store/ports/projects/environment-builds.ts";
import type { Sandbox } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { pageFrom } from "../pages.ts";
import { type EnvironmentBuildRow, Tables, type TableSet } from "../tables.ts";

const KIND = "environment_build";

const recordOf = ({ record, snapshot }: EnvironmentBuildRow): EnvironmentBuild => ({
  ...record,
  status: snapshot.state,
  ...snapshot.context,
});

/** Newest first. */
const records = (
  tables: TableSet,
  where: (row: EnvironmentBuildRow) => boolean,
): readonly EnvironmentBuild[] =>
  [...tables.environmentBuilds.values()]
    .filter(where)
    .map(recordOf)
    .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));

const open = (tables: TableSet, { now, ...build }: NewBuild) =>
  Effect.sync(() => {
    if (!tables.projects.has(build.projectId)) return null;
    const [live] = records(
      tables,
      (row) =>
        row.record.projectId === build.projectId &&
        row.record.nodeId === build.nodeId &&
        row.record.source.key === build.source.key &&
        isLiveBuildState(row.snapshot.state),
    );
    if (live !== undefined) return { build: live, isNew: false };
    const record = { ...build, step: null, bases: [], createdAt: now, begunAt: null, endedAt: null };
    const row = {
      record,
      snapshot: NEW_BUILD.snapshot,
      version: 1,
      log: [],
      logBytes: 0,
      isForgotten: false,
    };
    tables.environmentBuilds.set(build.id, row);
    tables.environmentBuildOutbox.append(build.id, NEW_BUILD.commands, now);
    tables.keep({ kind: KIND, id: build.id }, firstTransition(NEW_BUILD, { now }), 1);
    const opened = recordOf(row);
    tables.events.append([buildEvent(opened, { previous: null, at: now })]);
    return { build: opened, isNew: true };
  });

const memoryOf = (tables: TableSet) =>
  makeActorMemory<
    EnvironmentBuildSnapshot,
    EnvironmentBuildEvent,
    EnvironmentBuildCommand,
    EnvironmentBuildRow
  >(tables, {
    kind: KIND,
    rows: tables.environmentBuilds,
    outbox: tables.environmentBuildOutbox,
    step: (row, step) => {
      const instants = buildInstants(step);
      const begun = instants.begunAt === undefined ? {} : { step: null };
      return Effect.succeed({ ...row, record: { ...row.record, ...begun, ...instants } });
    },
    finish: (row, { before, after, now }) => {
      if (before.state === after.state) return;
      tables.events.append([buildEvent(recordOf(row), { previous: before.state, at: now })]);
    },
  });

const change = (
  tables: TableSet,
  id: string,
  by: (row: EnvironmentBuildRow) => Partial<EnvironmentBuildRow>,
): void => {
  const row = tables.environmentBuilds.get(id);
  if (row !== undefined) tables.environmentBuilds.set(id, { ...row, ...by(row) });
};

const appendLog = (tables: TableSet, id: string, text: string): void =>
  change(tables, id, ({ log, logBytes }) => {
    const piece = logPiece(text, logBytes);
    const added = piece.text === null ? [] : [{ number: log.length + 1, text: piece.text }];
    return { log: [...log, ...added], logBytes: piece.bytes };
  });

/** Builds that sandboxes use, or wait for. */
const usedBySandboxes = (tables: TableSet, where: (sandbox: Sandbox) => boolean): ReadonlySet<string> =>
  new Set(
    [...tables.sandboxes.values()].flatMap(({ record }) =>
      record.environment !== null && tables.isSandboxLive(record.id) && where(record)
        ? [record.environment.buildId]
        : [],
    ),
  );

/** In the order of their projects. */
const newestReady = (tables: TableSet, nodeId: string): readonly EnvironmentBuild[] => {
  const newest = new Map<string, EnvironmentBuild>();
  for (const build of records(
    tables,
    (row) => row.record.nodeId === nodeId && row.snapshot.state === "ready" && !row.isForgotten,
  ))
    if (!newest.has(build.projectId)) newest.set(build.projectId, build);
  return [...newest.values()].toSorted((a, b) => (a.projectId < b.projectId ? -1 : 1));
};

const inUse = (tables: TableSet, nodeId: string): ReadonlySet<string> =>
  new Set([
    ...newestReady(tables, nodeId).map(({ id }) => id),
    ...usedBySandboxes(tables, (sandbox) => sandbox.nodeId === nodeId),
  ]);

/** Removes a build. Sandboxes that had it lose the reference, as by the foreign key in Postgres. */
const remove = (tables: TableSet, id: string): void => {
  tables.environmentBuilds.delete(id);
  for (const [sandboxId, row] of tables.sandboxes)
    if (row.record.environment?.buildId === id)
      tables.sandboxes.set(sandboxId, { ...row, record: { ...row.record, environment: null } });
};

const prune = (tables: TableSet): void => {
  const used = usedBySandboxes(tables, () => true);
  const places = new Map<string, number>();
  for (const { id, projectId, nodeId } of records(tables, () => true)) {
    const place = (places.get(`${projectId} ${nodeId}`) ?? 0) + 1;
    places.set(`${projectId} ${nodeId}`, place);
    const row = tables.environmentBuilds.get(id);
    if (place <= BUILDS_KEPT || row === undefined || used.has(id)) continue;
    const { state } = row.snapshot;
    const isOver = state === "failed" || state === "cancelled" || (state === "ready" && row.isForgotten);
    if (isOver && tables.environmentBuildOutbox.of(id).length === 0) remove(tables, id);
  }
};

export const layer = Layer.effect(
  EnvironmentBuilds,
  Effect.map(Tables, (tables) => ({
    ...memoryOf(tables),
    open: (build) => open(tables, build),
    get: (id) =>
      Effect.sync(() => {
        const row = tables.environmentBuilds.get(id);
        return row === undefined ? null : recordOf(row);
      }),
    newest: ({ projectId, nodeId, key }) =>
      Effect.sync(
        () =>
          records(
            tables,
            ({ record }) =>
              record.projectId === projectId &&
              (nodeId === undefined || record.nodeId === nodeId) &&
              record.source.key === key,
          )[0] ?? null,
      ),
    ready: ({ projectId, nodeId, limit }) =>
      Effect.sync(() =>
        records(
          tables,
          ({ record, snapshot, isForgotten }) =>
            record.projectId === projectId &&
            record.nodeId === nodeId &&
            snapshot.state === "ready" &&
            !isForgotten,
        ).slice(0, limit),
      ),
    newestReady: (nodeId) => Effect.sync(() => newestReady(tables, nodeId)),
    list: (projectId, request) =>
      Effect.suspend(() =>
        pageFrom(
          records(tables, ({ record }) => record.projectId === projectId),
          request,
          ({ createdAt, id }) => ({ at: createdAt, id }),
        ),
      ),
    noteStep: (id, step) =>
      Effect.sync(() =>
        change(tables, id, ({ record, snapshot }) =>
          isLiveBuildState(snapshot.state) ? { record: { ...record, step } } : {},
        ),
      ),
    noteBases: (id, bases) =>
      Effect.sync(() =>
        change(tables, id, ({ record, snapshot }) =>
          isLiveBuildState(snapshot.state) ? { record: { ...record, bases } } : {},
        ),
      ),
    appendLog: (id, text) => Effect.sync(() => appendLog(tables, id, text)),
    clearLog: (id) => Effect.sync(() => change(tables, id, () => ({ log: [], logBytes: 0 }))),
    log: (id, { after, limit }) =>
      Effect.sync(() =>
        (tables.environmentBuilds.get(id)?.log ?? []).filter(({ number }) => number > after).slice(0, limit),
      ),
    inUse: (nodeId) => Effect.sync(() => inUse(tables, nodeId)),
    unheld: (ids) => Effect.sync(() => ids.filter((id) => !tables.environmentBuilds.has(id))),
    forgetImages: (ids) =>
      Effect.sync(() => ids.forEach((id) => change(tables, id, () => ({ isForgotten: true })))),
    prune: Effect.sync(() => prune(tables)),
  })),
);
