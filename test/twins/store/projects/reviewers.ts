/** Who was asked to review a change request, in memory: see the feature's sql/reviewers.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  changeRequestMoved,
  reviewRequested,
} from "../../../../src/features/change-requests/ports/change-request-steps.ts";
import {
  type Reviewer,
  Reviewers,
  REVIEWERS_MAX,
} from "../../../../src/features/change-requests/ports/reviewers.ts";
import { Tables, type TableSet } from "../tables.ts";

const inOrder = (one: Reviewer, other: Reviewer): number =>
  one.askedAt - other.askedAt || (one.userId < other.userId ? -1 : 1);

export const reviewersOf = ({ reviewers, remarks }: TableSet, requestId: string): readonly Reviewer[] =>
  (reviewers.get(requestId) ?? []).map((asked) =>
    Object.assign({}, asked, {
      hasSpoken: [...remarks.values()].some(
        (remark) =>
          remark.requestId === requestId &&
          remark.createdBy === asked.userId &&
          remark.createdAt >= asked.askedAt,
      ),
    }),
  );

export const layer = Layer.effect(
  Reviewers,
  Effect.map(Tables, (tables) => ({
    list: (requestId) => Effect.sync(() => reviewersOf(tables, requestId)),
    ask: (request, asked) =>
      Effect.sync(() => {
        const others = reviewersOf(tables, request.id).filter(({ userId }) => userId !== asked.userId);
        const isAgain = others.length < reviewersOf(tables, request.id).length;
        if (!isAgain && others.length >= REVIEWERS_MAX) return null;
        const name = tables.users.get(asked.userId)?.name ?? "";
        const reviewer = { ...asked, name, hasSpoken: false };
        tables.reviewers.set(request.id, [...others, reviewer].toSorted(inOrder));
        tables.events.append([reviewRequested(request, reviewer)]);
        return reviewersOf(tables, request.id).find(({ userId }) => userId === asked.userId) ?? null;
      }),
    withdraw: (request, userId, at) =>
      Effect.sync(() => {
        const others = reviewersOf(tables, request.id).filter((one) => one.userId !== userId);
        if (others.length === reviewersOf(tables, request.id).length) return false;
        tables.reviewers.set(request.id, others);
        tables.events.append([changeRequestMoved(request, at)]);
        return true;
      }),
  })),
);
