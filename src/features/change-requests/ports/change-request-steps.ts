/** What a change request's step means for the columns of its record, and its events: shared by both adapters, so that they cannot differ. */
import {
  changeRequest,
  type ChangeRequestCommand,
  type ChangeRequestEvent,
  type ChangeRequestSnapshot,
} from "../../../machines/change-request.ts";
import type { Change } from "../../../store/ports/journal.ts";
import type { NewEvent } from "../../../store/ports/events.ts";
import type { ChangeRequest } from "./change-requests.ts";
import type { NewRemark } from "./remarks.ts";
import type { Reviewer } from "./reviewers.ts";

export type ChangeRequestChange = Change<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>;

/** A column that is absent stays as it is. */
export type ChangeRequestColumns = Pick<ChangeRequest, "mergeSides"> &
  Partial<Pick<ChangeRequest, "status" | "updatedAt" | "merged">>;

/** A new request's first snapshot and commands. */
export const OPENED = changeRequest.start({});

/** The columns that a step sets. `status` is what clients see: it moves when the request is merged or closed. */
export const changeRequestColumns = ({
  before,
  after,
  now,
}: Pick<ChangeRequestChange, "before" | "after" | "now">): ChangeRequestColumns => {
  const { sides: mergeSides, commit, by } = after.context;
  if (before.state === after.state) return { mergeSides };
  switch (after.state) {
    case "closed":
      return { mergeSides, status: "closed", updatedAt: now };
    case "merged":
      return {
        mergeSides,
        status: "merged",
        updatedAt: now,
        merged: commit === null ? null : { commit, at: now, by },
      };
    default:
      return { mergeSides };
  }
};

const CHANGE_REQUEST_EVENTS = {
  open: "change_request.opened",
  merged: "change_request.merged",
  closed: "change_request.closed",
} as const;

/** The event of a change request that has just reached its status. */
export const changeRequestEvent = ({
  projectId,
  sessionId,
  updatedAt,
  number,
  status,
}: ChangeRequest): NewEvent => ({
  projectId,
  sessionId,
  at: updatedAt,
  type: CHANGE_REQUEST_EVENTS[status],
  data: { number, status },
});

/** The event of an open change request whose branches have moved since readers were last told. */
export const changeRequestMoved = (
  { projectId, sessionId, number, status, tips }: ChangeRequest,
  at: number,
): NewEvent => ({
  projectId,
  sessionId,
  at,
  type: "change_request.updated",
  data: { number, status, base_commit: tips.base, head_commit: tips.head },
});

/** The event of a person who is asked to review an open change request. */
export const reviewRequested = (
  { projectId, sessionId, number, status }: ChangeRequest,
  { userId, name, askedBy, askedAt }: Reviewer,
): NewEvent => ({
  projectId,
  sessionId,
  at: askedAt,
  type: "change_request.review_requested",
  data: { number, status, reviewer_id: userId, reviewer_name: name, asked_by: askedBy },
});

/** The event of a new remark. @param answers the author of the remark that it answers */
export const remarkMade = (
  { projectId, sessionId, number, status }: ChangeRequest,
  { id, kind, createdBy, createdAt }: NewRemark,
  answers: string | null,
): NewEvent => ({
  projectId,
  sessionId,
  at: createdAt,
  type: "change_request.remarked",
  data: { number, status, remark_id: id, kind, by: createdBy, answers },
});
