/** What a change request's step means for the columns of its record: shared by both adapters, so that they cannot differ. */
import {
  changeRequest,
  type ChangeRequestCommand,
  type ChangeRequestEvent,
  type ChangeRequestSnapshot,
} from "../machines/change-request.ts";
import type { Change } from "./ports/journal.ts";
import type { ChangeRequest } from "./ports/change-requests.ts";

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
