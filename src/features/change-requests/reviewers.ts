/** People who are asked to review a change request. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { includesRole } from "../../domain/person/role.ts";
import { People } from "../../store/ports/people/people.ts";
import { Caller } from "../../http/api/access.ts";
import { Conflict, notFound, Unprocessable } from "../../http/api/errors.ts";
import { instant } from "../../http/steps/wire.ts";
import type { ChangeRequest } from "./ports/change-requests.ts";
import { type NamedVerdict, Remarks } from "./ports/remarks.ts";
import { REVIEWER_ROLE } from "./rules/verdicts.ts";
import { type Reviewer, Reviewers, REVIEWERS_MAX } from "./ports/reviewers.ts";

/** A verdict from before she was asked answers nothing. */
export const reviewerWire = (
  { userId, name, askedBy, askedAt, hasSpoken }: Reviewer,
  verdicts: readonly NamedVerdict[],
) => ({
  id: userId,
  name,
  asked_by: askedBy,
  asked_at: instant(askedAt),
  answer:
    verdicts.find(({ by, at }) => by === userId && at >= askedAt)?.kind ??
    (hasSpoken ? ("comment" as const) : null),
});

const ofOpen = Effect.fnUntraced(function* ({ number, status }: ChangeRequest) {
  if (status !== "open")
    return yield* new Conflict({
      error: `Change request #${number} is already ${status}.`,
      code: "not_open",
    });
});

/** Only who may review can be asked: an active member of the project. */
export const askReviewer = Effect.fnUntraced(function* (request: ChangeRequest, userId: string) {
  const { user } = yield* Caller;
  yield* ofOpen(request);
  const members = yield* (yield* People).members(request.projectId);
  const member = members.find(({ person }) => person.id === userId);
  if (member === undefined) return yield* notFound("member");
  if (!includesRole(member.role, REVIEWER_ROLE))
    return yield* new Unprocessable({
      error: `${member.person.name} only reads this project. A reviewer needs the role ${REVIEWER_ROLE}.`,
      code: "not_a_reviewer",
    });
  const askedAt = yield* Clock.currentTimeMillis;
  const reviewer = yield* (yield* Reviewers).ask(request, { userId, askedBy: user.id, askedAt });
  if (reviewer === null)
    return yield* new Conflict({
      error: `A change request has at most ${REVIEWERS_MAX} reviewers.`,
      code: "too_many_reviewers",
    });
  return reviewerWire(reviewer, yield* (yield* Remarks).verdicts(request.id));
});

export const withdrawReviewer = Effect.fnUntraced(function* (request: ChangeRequest, userId: string) {
  yield* ofOpen(request);
  const now = yield* Clock.currentTimeMillis;
  if (!(yield* (yield* Reviewers).withdraw(request, userId, now))) return yield* notFound("reviewer");
});
