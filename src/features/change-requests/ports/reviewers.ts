/** Who was asked to review a change request: the table change_request_reviewers. */
import * as Context from "effect/Context";
import type { Stored } from "../../../store/ports/journal.ts";
import type { ChangeRequest } from "./change-requests.ts";

/** A change request has at most so many reviewers. */
export const REVIEWERS_MAX = 20;

export interface Reviewer {
  readonly userId: string;
  readonly name: string;
  readonly askedBy: string;
  /** Of the last time, if she was asked again. */
  readonly askedAt: number;
  /** Whether she said something since, a verdict or a comment. Then the request waits for her no more. */
  readonly hasSpoken: boolean;
}

/** One request for a person's review. */
export type Asking = Pick<Reviewer, "userId" | "askedBy" | "askedAt">;

/** Each change tells the readers of the request. */
export class Reviewers extends Context.Service<
  Reviewers,
  {
    /** In the order in which they were asked. */
    readonly list: (requestId: string) => Stored<readonly Reviewer[]>;
    /**
     * Asks a person, or asks her again (`change_request.review_requested`).
     *
     * @returns null if the request has REVIEWERS_MAX others
     */
    readonly ask: (request: ChangeRequest, reviewer: Asking) => Stored<Reviewer | null>;
    /** @returns whether she was asked */
    readonly withdraw: (request: ChangeRequest, userId: string, at: number) => Stored<boolean>;
  }
>()("platform/change-requests/Reviewers") {}
