/** Change requests in memory: see postgres/change-requests.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { changeRequestEvent, changeRequestMoved } from "../event-rows.ts";
import { Taken } from "../ports/errors.ts";
import { ChangeRequests } from "../ports/change-requests.ts";
import type { ChangeRequest } from "../ports/records.ts";
import { pageFrom, Tables, type TableSet } from "./tables.ts";

type OpenRequest = Parameters<(typeof ChangeRequests)["Service"]["open"]>[0];

const open = (tables: TableSet, { now, ...request }: OpenRequest) =>
  Effect.suspend(() => {
    const { projectId, headRef } = request;
    const project = tables.projects.get(projectId);
    if (project === undefined) return Effect.die(new Error("a change request of an unknown project"));
    const isTaken = [...tables.changeRequests.values()].some(
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
    tables.changeRequests.set(opened.id, opened);
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

/** Moves a request to another status. */
const move = (tables: TableSet, request: ChangeRequest): ChangeRequest => {
  tables.changeRequests.set(request.id, request);
  tables.events.append([changeRequestEvent(request)]);
  return request;
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
  tables.changeRequests.set(found.id, moved);
  tables.events.append([changeRequestMoved(moved, now)]);
};

export const layer = Layer.effect(
  ChangeRequests,
  Effect.map(Tables, (tables) => {
    const ofProject = (projectId: string) =>
      [...tables.changeRequests.values()].filter((request) => request.projectId === projectId);
    const find = (projectId: string, number: number) =>
      ofProject(projectId).find((request) => request.number === number) ?? null;
    return {
      open: (request) => open(tables, request),
      get: (projectId, number) => Effect.sync(() => find(projectId, number)),
      openOf: (projectId, headRef) =>
        Effect.sync(
          () =>
            ofProject(projectId).find((found) => found.headRef === headRef && found.status === "open") ??
            null,
        ),
      allOpen: ({ projectId, after, limit }) =>
        Effect.sync(() =>
          (projectId === null ? [...tables.changeRequests.values()] : ofProject(projectId))
            .filter((found) => found.status === "open" && (after === null || inOrder(found, after) > 0))
            .toSorted(inOrder)
            .slice(0, limit),
        ),
      noteTips: (projectId, number, told) =>
        Effect.sync(() => noteTips(tables, find(projectId, number), told)),
      beginMerge: (projectId, number, { base, head }) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          if (found?.status !== "open") return false;
          tables.changeRequests.set(found.id, { ...found, mergeSides: { base, head } });
          return true;
        }),
      recordMerge: (projectId, number, { base, head, commit, by, now }) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          if (found === null || found.status === "merged") return found;
          const merge = { mergeSides: { base, head }, merged: { commit, at: now, by } };
          return move(tables, { ...found, ...merge, status: "merged", updatedAt: now });
        }),
      close: (projectId, number, now) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          return found?.status === "open"
            ? move(tables, { ...found, status: "closed", updatedAt: now })
            : found;
        }),
      withPulls: (projectId, limit) => Effect.sync(() => withPulls(ofProject(projectId), limit)),
      recordPull: (projectId, number, pull) =>
        Effect.sync(() => {
          const found = find(projectId, number);
          if (found !== null) tables.changeRequests.set(found.id, { ...found, pull });
        }),
      list: (projectId, request) =>
        Effect.suspend(() => {
          const { status } = request;
          const listed = ofProject(projectId).filter((found) => status === null || found.status === status);
          return pageFrom(listed, request, ({ createdAt, id }) => ({ at: createdAt, id }));
        }),
    };
  }),
);
