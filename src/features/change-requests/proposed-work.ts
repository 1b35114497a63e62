/** What the core hears about change requests (src/services/sessions/proposed-work.ts). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { ProposedWork } from "../../services/sessions/proposed-work.ts";
import { ChangeRequests } from "./ports/change-requests.ts";

/** Another repository may have a pull request of the same number. A delivery without an address is not compared. */
const isSamePage = (page: string, url: string | null): boolean =>
  url === null || page.toLowerCase() === url.toLowerCase();

export const proposedWorkLayer = Layer.effect(
  ProposedWork,
  Effect.map(ChangeRequests, ({ memory, unsettled, get, byId, byPull, findMerged }) => ({
    unsettled,
    actor: Effect.fnUntraced(function* (projectId, number) {
      const request = yield* get(projectId, number);
      const loaded = request === null ? null : yield* memory.load(request.id);
      return request === null || loaded === null ? null : { id: request.id, snapshot: loaded.snapshot };
    }),
    merged: (projectId, branches) =>
      Effect.map(findMerged(projectId, branches), (request) =>
        request === null || request.merged === null || request.mergeSides === null
          ? null
          : { head: request.mergeSides.head, commit: request.merged.commit },
      ),
    isOwn: Effect.fnUntraced(function* (projectId, { changeRequestId, number, url }) {
      const markedRequest = changeRequestId === null ? null : yield* byId(changeRequestId);
      if (markedRequest?.projectId === projectId) return true;
      const pull = number === null ? null : ((yield* byPull(projectId, number))?.pull ?? null);
      return pull !== null && pull.status !== "wanted" && isSamePage(pull.url, url);
    }),
  })),
);
