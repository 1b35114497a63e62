/** The news of projects, in memory: see features/activity/sql. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { News } from "../../../../src/domain/service/news.ts";
import { Activity, type ActivityEntry } from "../../../../src/features/activity/ports/activity.ts";
import type { ChangeRequest } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { numberPage, readNumberCursor } from "../../../../src/store/cursor.ts";
import { Tables, type TableSet } from "../tables.ts";

type Row = TableSet["events"]["rows"][number];

const requestOf = (tables: TableSet, { projectId, data, type }: Row): ChangeRequest | undefined =>
  type.startsWith("change_request.")
    ? [...tables.changeRequests.values()]
        .map(({ record }) => record)
        .find((record) => record.projectId === projectId && record.number === data["number"])
    : undefined;

/** The id of who did it. */
const doerOf = (kind: News, { data }: Row, request: ChangeRequest | undefined): unknown => {
  switch (kind) {
    case "change_request.opened":
      return request?.createdBy;
    case "change_request.merged":
      return request?.merged?.by;
    case "change_request.remarked":
      return data["by"];
    case "change_request.review_requested":
      return data["asked_by"];
    case "fire.expired":
    case "queue.full":
      return data["requested_by"];
    default:
      return null;
  }
};

const entryOf = (tables: TableSet, row: Row, kind: News, personId: string): ActivityEntry => {
  const { place: number, at, projectId, sessionId, data } = row;
  const record = tables.sessions.get(sessionId ?? "")?.record;
  const session = record?.deletedAt === null ? record : undefined;
  const request = requestOf(tables, row);
  const doer = String(doerOf(kind, row, request));
  const person = tables.users.get(doer);
  return {
    number,
    kind,
    at,
    project: { id: projectId, name: tables.projects.get(projectId)?.record.name ?? "" },
    session:
      session === undefined
        ? null
        : {
            id: session.id,
            name: session.name,
            triggerSlug: session.triggerSlug,
            prompt: session.initialPrompt?.slice(0, 1000) ?? null,
          },
    changeRequest: request === undefined ? null : { number: request.number, title: request.title },
    person: person === undefined ? null : { id: doer, name: person.name },
    isOwn:
      (session?.createdBy === personId && session.triggerSlug === null) ||
      request?.createdBy === personId ||
      [data["reviewer_id"], data["answers"], data["requested_by"]].includes(personId),
    data,
  };
};

export const layer = Layer.effect(
  Activity,
  Effect.map(Tables, (tables) => ({
    list: Effect.fnUntraced(function* ({ accountId, userId }, { cursor, limit, personId, isOwn, projectId }) {
      const before = (yield* readNumberCursor(cursor)) ?? Number.MAX_SAFE_INTEGER;
      const isSeen = (id: string): boolean =>
        (projectId === null || id === projectId) &&
        tables.projects.get(id)?.record.accountId === accountId &&
        (userId === null || tables.roleOf(userId, id) !== null);
      const entries = tables.events.rows
        .toReversed()
        .flatMap((row) =>
          row.news !== null && row.place < before && isSeen(row.projectId)
            ? [entryOf(tables, row, row.news, personId)]
            : [],
        )
        .filter((entry) => !isOwn || entry.isOwn);
      return numberPage(entries.slice(0, limit + 1), limit);
    }),
    seenAt: (personId) => Effect.sync(() => tables.activitySeen.get(personId) ?? null),
    see: (personId, at) =>
      Effect.sync(() => {
        tables.activitySeen.set(personId, Math.max(at, tables.activitySeen.get(personId) ?? at));
      }),
  })),
);
