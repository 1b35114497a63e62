/** Change requests in memory: see its sql/change-requests.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type {
  ChangeRequestCommand,
  ChangeRequestEvent,
  ChangeRequestSnapshot,
} from "../../../../src/machines/change-request.ts";
import {
  changeRequestColumns,
  changeRequestEvent,
  changeRequestMoved,
  OPENED,
} from "../../../../src/features/change-requests/ports/change-request-steps.ts";
import { Taken } from "../../../../src/store/ports/errors.ts";
import {
  ChangeRequests,
  type ChangeRequest,
  type ListRequest,
} from "../../../../src/features/change-requests/ports/change-requests.ts";
import { firstTransition } from "../../../../src/machines/transition.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { reviewersOf } from "./reviewers.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type ChangeRequestRow, type TableSet } from "../tables.ts";

type OpenRequest = Parameters<(typeof ChangeRequests)["Service"]["open"]>[0];

const records = (tables: TableSet): readonly ChangeRequest[] =>
  [...tables.changeRequests.values()].map(({ record }) => record);

const open = (tables: TableSet, { now, ...request }: OpenRequest) =>
  Effect.suspend(() => {
    const { projectId, headRef } = request;
    const project = tables.projects.get(projectId);
    if (project === undefined) return Effect.die(new Error("a change request of an unknown project"));
    const isTaken = records(tables).some(
      (other) => other.projectId === projectId && other.headRef === headRef && other.status === "open",
    );
    if (isTaken) return Effect.fail(new Taken({ what: headRef }));
    const number = project.changeRequests + 1;
    tables.projects.set(projectId, { ...project, changeRequests: number });
    const opened: ChangeRequest = {
      ...request,
      number,
      status: "open",
      createdAt: now,
      updatedAt: now,
      mergeSides: null,
      merged: null,
      pull: null,
    };
    tables.changeRequests.set(opened.id, { record: opened, snapshot: OPENED.snapshot, version: 1 });
    tables.changeRequestOutbox.append(opened.id, OPENED.commands, now);
    tables.keep({ kind: "change_request", id: opened.id }, firstTransition(OPENED, { now }), 1);
    tables.events.append([changeRequestEvent(opened)]);
    return Effect.succeed(opened);
  });

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** The order of their pages: see `allOpen` of the port. */
const inOrder = (
  a: Pick<ChangeRequest, "projectId" | "headRef">,
  b: Pick<ChangeRequest, "projectId" | "headRef">,
): number => compare(a.projectId, b.projectId) || compare(a.headRef, b.headRef);

interface TipsTold {
  readonly tips: ChangeRequest["tips"];
  readonly now: number;
}

const memoryOf = (tables: TableSet) =>
  makeActorMemory<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand, ChangeRequestRow>(tables, {
    kind: "change_request",
    rows: tables.changeRequests,
    outbox: tables.changeRequestOutbox,
    step: (row, change) =>
      Effect.succeed({ ...row, record: { ...row.record, ...changeRequestColumns(change) } }),
    finish: ({ record }, change) => {
      if (changeRequestColumns(change).status !== undefined)
        tables.events.append([changeRequestEvent(record)]);
      else if (change.before.state !== change.after.state) tables.events.waiting.wake(record.projectId);
    },
  });

/** Writes columns that no step of the actor sets. */
const put = (tables: TableSet, record: ChangeRequest): void => {
  const row = tables.changeRequests.get(record.id);
  if (row !== undefined) tables.changeRequests.set(record.id, { ...row, record });
};

/** Requests that have a pull request, or should get one. Ended ones come first. */
const withPulls = (requests: readonly ChangeRequest[], limit: number): readonly ChangeRequest[] =>
  requests
    .filter(({ status, pull }) => status === "open" || pull?.status === "wanted" || pull?.status === "open")
    .toSorted((a, b) => Number(a.status === "open") - Number(b.status === "open") || a.number - b.number)
    .slice(0, limit);

const noteTips = (tables: TableSet, found: ChangeRequest | null, told: TipsTold): void => {
  const { tips, now } = told;
  if (found?.status !== "open") return;
  if (found.tips.base === tips.base && found.tips.head === tips.head) return;
  const moved = { ...found, tips };
  put(tables, moved);
  tables.events.append([changeRequestMoved(moved, now)]);
};

const reviewAsked = (tables: TableSet, { id, status }: ChangeRequest, reader: string | undefined) => {
  const asked = reviewersOf(tables, id).find(({ userId }) => userId === reader);
  if (asked === undefined || asked.hasSpoken || status !== "open") return null;
  const { askedBy: by, askedAt: at } = asked;
  return { by, name: tables.users.get(by)?.name ?? "", at };
};

const list = (tables: TableSet, requests: readonly ChangeRequest[], request: ListRequest) => {
  const { status, sessionId, reader, isReviewAsked = false } = request;
  const listed = requests
    .filter((found) => status === null || found.status === status)
    .filter((found) => sessionId === undefined || found.sessionId === sessionId)
    .map((found) => Object.assign({ reviewAsked: reviewAsked(tables, found, reader) }, found))
    .filter((found) => !isReviewAsked || found.reviewAsked !== null);
  return pageFrom(listed, request, ({ createdAt, id }) => ({ at: createdAt, id }));
};

export const layer = Layer.effect(
  ChangeRequests,
  Effect.map(Tables, (tables) => {
    const ofProject = (projectId: string) =>
      records(tables).filter((request) => request.projectId === projectId);
    const find = (projectId: string, number: number) =>
      ofProject(projectId).find((request) => request.number === number) ?? null;
    return {
      ...memoryOf(tables),
      byId: (id) => Effect.sync(() => tables.changeRequests.get(id)?.record ?? null),
      open: (request) => open(tables, request),
      get: (projectId, number) => Effect.sync(() => find(projectId, number)),
      byPull: (projectId, pullNumber) =>
        Effect.sync(
          () =>
            ofProject(projectId).findLast(
              ({ pull }) => pull !== null && pull.status !== "wanted" && pull.number === pullNumber,
            ) ?? null,
        ),
      findOpen: (projectId, headRef) =>
        Effect.sync(
          () =>
            ofProject(projectId).find((found) => found.headRef === headRef && found.status === "open") ??
            null,
        ),
      findMerged: (projectId, { headRef, baseRef, before = Infinity }) =>
        Effect.sync(
          () =>
            ofProject(projectId).findLast(
              (found) =>
                found.headRef === headRef &&
                found.baseRef === baseRef &&
                found.status === "merged" &&
                found.number < before,
            ) ?? null,
        ),
      allOpen: ({ projectId, after, limit }) =>
        Effect.sync(() =>
          (projectId === null ? records(tables) : ofProject(projectId))
            .filter((found) => found.status === "open" && (after === null || inOrder(found, after) > 0))
            .toSorted(inOrder)
            .slice(0, limit),
        ),
      noteTips: (projectId, number, told) =>
        Effect.sync(() => noteTips(tables, find(projectId, number), told)),
      edit: (projectId, number, { now, ...change }) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          if (found === null) return null;
          const edited = { ...found, ...change, updatedAt: now };
          put(tables, edited);
          tables.events.append([changeRequestMoved(edited, now)]);
          return edited;
        }),
      withPulls: (projectId, limit) => Effect.sync(() => withPulls(ofProject(projectId), limit)),
      recordPull: (projectId, number, pull) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          if (found !== null) put(tables, { ...found, pull });
        }),
      list: (projectId, request) => Effect.suspend(() => list(tables, ofProject(projectId), request)),
      listForReader: ({ accountId, userId }, request) =>
        Effect.suspend(() => {
          const seen = records(tables).filter(
            ({ projectId: id }) =>
              tables.projects.get(id)?.record.accountId === accountId &&
              (userId === null || tables.roleOf(userId, id) !== null),
          );
          return list(tables, seen, request);
        }),
    };
  }),
);
