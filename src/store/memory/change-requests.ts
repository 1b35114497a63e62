/** Change requests in memory: see postgres/change-requests.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { changeRequestEvent } from "../event-rows.ts";
import { ChangeRequests, Taken } from "../port.ts";
import type { ChangeRequest } from "../records.ts";
import { pageFrom, Tables, type TableSet } from "./tables.ts";

type OpenRequest = Parameters<(typeof ChangeRequests)["Service"]["open"]>[0];

const open = (tables: TableSet, { now, ...request }: OpenRequest) =>
  Effect.suspend(() => {
    const { projectId, sessionId, headRef } = request;
    const project = tables.projects.get(projectId);
    if (project === undefined) return Effect.die(new Error("a change request of an unknown project"));
    const isTaken = [...tables.changeRequests.values()].some(
      (other) => other.projectId === projectId && other.headRef === headRef && other.status === "open",
    );
    if (isTaken) return Effect.fail(new Taken({ what: headRef }));
    const number = project.changeRequests + 1;
    tables.projects.set(projectId, { ...project, changeRequests: number });
    const opened: ChangeRequest = { ...request, number, status: "open", createdAt: now, updatedAt: now };
    tables.changeRequests.set(opened.id, opened);
    tables.events.append([changeRequestEvent({ projectId, sessionId, at: now }, opened)]);
    return Effect.succeed(opened);
  });

export const layer = Layer.effect(
  ChangeRequests,
  Effect.map(Tables, (tables) => {
    const ofProject = (projectId: string) =>
      [...tables.changeRequests.values()].filter((request) => request.projectId === projectId);
    return {
      open: (request) => open(tables, request),
      get: (projectId, number) =>
        Effect.sync(() => ofProject(projectId).find((request) => request.number === number) ?? null),
      list: (projectId, request) =>
        Effect.suspend(() => {
          const { status } = request;
          const listed = ofProject(projectId).filter((found) => status === null || found.status === status);
          return pageFrom(listed, request, ({ createdAt, id }) => ({ at: createdAt, id }));
        }),
    };
  }),
);
