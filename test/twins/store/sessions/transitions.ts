/** The history of actors in memory: see postgres/events/transitions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { numberPage, readNumberCursor } from "../../../../src/store/cursor.ts";
import {
  Transitions,
  type ActorKey,
  type ActorTransition,
  type HistoryLimits,
  type Transition,
} from "../../../../src/store/ports/transitions.ts";
import type { NewTransition } from "../../../../src/machines/transition.ts";
import { Tables, type TableSet } from "../tables.ts";

const rowsOf = (tables: TableSet, { kind, id }: ActorKey) => tables.transitions.get(`${kind}/${id}`) ?? [];

/** When the newest of these rows that entered another state was written. */
const entry = (rows: readonly NewTransition[]): number | null =>
  rows.findLast(({ from, to }) => from !== to)?.at ?? null;

const listed = (tables: TableSet, actor: ActorKey): readonly Transition[] => {
  const rows = rowsOf(tables, actor);
  return rows
    .map((row, place) => Object.assign({ enteredAt: entry(rows.slice(0, place)) }, row))
    .toReversed();
};

const recent = (tables: TableSet, { since, limit }: { readonly since: number; readonly limit: number }) =>
  [...tables.transitions]
    .flatMap(([key, rows]) => {
      const [kind = "", ...id] = key.split("/");
      const actor = { kind: kind as ActorKey["kind"], id: id.join("/") };
      return rows.filter(({ at }) => at >= since).map((row) => ({ actor, row }));
    })
    .toSorted((one, other) => one.row.at - other.row.at || one.row.number - other.row.number)
    .slice(-limit)
    .map(({ actor, row: { number: _, ...row } }): ActorTransition => Object.assign(row, { actor }));

const waiting = (tables: TableSet, { kind, id }: ActorKey) => {
  switch (kind) {
    case "session":
      return tables.sessionOutbox.waiting(id);
    case "sandbox":
      return tables.sandboxOutbox.waiting(id);
    case "conversation":
      return tables.conversationOutbox.waiting(id);
    case "change_request":
      return tables.changeRequestOutbox.waiting(id);
    case "environment_build":
      return tables.environmentBuildOutbox.waiting(id);
    case "trigger":
    case "account":
      return [];
  }
};

const prune = (tables: TableSet, { before, kept, movedSince }: HistoryLimits) => {
  let removed = 0;
  for (const [key, rows] of tables.transitions) {
    const hasMoved = rows.some(({ at }) => at >= movedSince);
    const left = rows.filter(({ at }) => at >= before).slice(hasMoved ? -kept : 0);
    removed += rows.length - left.length;
    if (left.length === 0) tables.transitions.delete(key);
    else tables.transitions.set(key, left);
  }
  return removed;
};

export const layer = Layer.effect(
  Transitions,
  Effect.map(Tables, (tables) => ({
    list: Effect.fnUntraced(function* (actor, { cursor, limit }) {
      const before = yield* readNumberCursor(cursor);
      const rows = listed(tables, actor).filter(({ number }) => before === null || number < before);
      return numberPage(rows, limit);
    }),
    newest: (actor) =>
      Effect.sync(() => {
        const rows = rowsOf(tables, actor);
        const row = rows.at(-1);
        if (row === undefined) return null;
        const { number: _, ...last } = row;
        return { last, since: entry(rows) };
      }),
    recent: (wanted) => Effect.sync(() => recent(tables, wanted)),
    waiting: (actor) => Effect.sync(() => waiting(tables, actor)),
    add: (rows) =>
      Effect.sync(() => {
        for (const { actor, ...row } of rows) tables.keep(actor, row, null);
      }),
    prune: (limits) => Effect.sync(() => prune(tables, limits)),
  })),
);
