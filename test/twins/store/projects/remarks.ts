/** What people say of a change request, in memory: see the feature's sql/remarks.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  changeRequestMoved,
  remarkMade,
} from "../../../../src/features/change-requests/ports/change-request-steps.ts";
import type { ChangeRequest } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { Remarks, REMARKS_MAX, type Remark } from "../../../../src/features/change-requests/ports/remarks.ts";
import { cutPage, readCursor } from "../../../../src/store/cursor.ts";
import { Tables, type TableSet } from "../tables.ts";

const oldestFirst = (one: Remark, other: Remark): number =>
  one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1);

const of = (tables: TableSet, requestId: string): readonly Remark[] =>
  [...tables.remarks.values()].filter((remark) => remark.requestId === requestId).toSorted(oldestFirst);

const tell = (tables: TableSet, request: ChangeRequest, now: number): void => {
  tables.events.append([changeRequestMoved(request, now)]);
};

/** @returns the changed remark. Null: the request has none with this id */
const change = (
  tables: TableSet,
  request: ChangeRequest,
  id: string,
  now: number,
  set: (remark: Remark) => Remark,
): Remark | null => {
  const remark = tables.remarks.get(id);
  if (remark?.requestId !== request.id) return null;
  tables.remarks.set(id, set(remark));
  tell(tables, request, now);
  return tables.remarks.get(id) ?? null;
};

export const layer = Layer.effect(
  Remarks,
  Effect.map(Tables, (tables) => ({
    add: (request, remark) =>
      Effect.sync(() => {
        const { replyTo } = remark;
        const known = of(tables, request.id);
        const isAnswer =
          replyTo === null || known.some(({ id, replyTo: above }) => id === replyTo && above === null);
        if (known.length >= REMARKS_MAX || !isAnswer) return null;
        const createdByName = tables.users.get(remark.createdBy)?.name ?? "";
        const added: Remark = { ...remark, createdByName, editedAt: null, resolved: null };
        tables.remarks.set(remark.id, added);
        tell(tables, request, remark.createdAt);
        const above = known.find(({ id }) => id === replyTo);
        tables.events.append([remarkMade(request, remark, above?.createdBy ?? null)]);
        return added;
      }),
    get: (requestId, id) =>
      Effect.sync(() => of(tables, requestId).find((remark) => remark.id === id) ?? null),
    list: Effect.fnUntraced(function* (requestId, { cursor, limit }) {
      const from = yield* readCursor(cursor);
      const rows = of(tables, requestId).filter(
        ({ createdAt, id }) =>
          from === null || createdAt > from.at || (createdAt === from.at && id > from.id),
      );
      return cutPage(rows, limit, ({ createdAt, id }) => ({ at: createdAt, id }));
    }),
    edit: (request, id, { body, at }) =>
      Effect.sync(() => change(tables, request, id, at, (remark) => ({ ...remark, body, editedAt: at }))),
    resolve: (request, id, { by, at }) =>
      Effect.sync(() =>
        change(tables, request, id, at, (remark) => ({
          ...remark,
          resolved: by === null ? null : { by, at },
        })),
      ),
    remove: (request, id, now) =>
      Effect.sync(() => {
        if (tables.remarks.get(id)?.requestId !== request.id) return false;
        for (const remark of of(tables, request.id))
          if (remark.id === id || remark.replyTo === id) tables.remarks.delete(remark.id);
        tell(tables, request, now);
        return true;
      }),
    verdicts: (requestId) =>
      Effect.sync(() => {
        const newest = new Map<string, Remark>();
        for (const remark of of(tables, requestId))
          if (remark.kind !== "comment") newest.set(remark.createdBy, remark);
        const projectId = tables.changeRequests.get(requestId)?.record.projectId ?? "";
        return [...newest.values()]
          .toSorted(
            (one, other) => one.createdAt - other.createdAt || (one.createdBy < other.createdBy ? -1 : 1),
          )
          .flatMap(({ kind, createdBy: by, createdByName: name, createdAt: at, commit }) =>
            kind === "comment"
              ? []
              : [
                  {
                    kind,
                    by,
                    name,
                    at,
                    commit,
                    ...tables.personNow(by, projectId),
                  },
                ],
          );
      }),
  })),
);
