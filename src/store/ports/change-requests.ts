/** Stored change requests (api.md 6). Adapters keep the invariants of journal.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";
import type { BadCursor, Taken } from "./errors.ts";
import type { BranchTips, ChangeRequest, MergeSides, Page, PageRequest, PullBeside } from "./records.ts";

export class ChangeRequests extends Context.Service<
  ChangeRequests,
  {
    /** Numbers count from 1 in each project. `Taken` if the head branch has an open request. */
    readonly open: (request: {
      readonly id: string;
      readonly projectId: string;
      readonly sessionId: string | null;
      readonly headRef: string;
      readonly baseRef: string;
      readonly title: string;
      readonly description: string;
      readonly createdBy: string | null;
      readonly tips: BranchTips;
      readonly now: number;
    }) => Stored<ChangeRequest, Taken>;
    readonly get: (projectId: string, number: number) => Stored<ChangeRequest | null>;
    /** The open request of a branch. */
    readonly openOf: (projectId: string, headRef: string) => Stored<ChangeRequest | null>;
    /** Open requests by project and head branch, after `after`: of one project, or of all. */
    readonly allOpen: (request: {
      readonly projectId: string | null;
      readonly after: Pick<ChangeRequest, "projectId" | "headRef"> | null;
      readonly limit: number;
    }) => Stored<readonly ChangeRequest[]>;
    /**
     * Records where a request's branches are. If that is new for an open request, the same transaction tells its
     * readers (`change_request.updated`). Otherwise nothing happens.
     */
    readonly noteTips: (
      projectId: string,
      number: number,
      seen: { readonly tips: BranchTips; readonly now: number },
    ) => Stored<void>;
    readonly list: (
      projectId: string,
      request: PageRequest & { readonly status: string | null },
    ) => Stored<Page<ChangeRequest>, BadCursor>;
    /**
     * Records the two commits of a merge before git is called (save, then act). If the base branch later contains the
     * work, this record shows that this request's merge put it there. False if the request is not open.
     */
    readonly beginMerge: (projectId: string, number: number, sides: MergeSides) => Stored<boolean>;
    /**
     * Records that git has merged it. A request that was closed in the meantime becomes merged too, since its work is
     * in the base branch. One that is merged already stays unchanged.
     * @returns the request after that. Null if it does not exist.
     */
    readonly recordMerge: (
      projectId: string,
      number: number,
      merge: MergeSides & { readonly commit: string; readonly by: string | null; readonly now: number },
    ) => Stored<ChangeRequest | null>;
    /** Closes it if it is open. @returns the request after that. Null if it does not exist. */
    readonly close: (projectId: string, number: number, now: number) => Stored<ChangeRequest | null>;
    /**
     * A project's requests that are open, or whose pull request at the code host may be open. Ended ones first, by
     * number, at most `limit`.
     */
    readonly withPulls: (projectId: string, limit: number) => Stored<readonly ChangeRequest[]>;
    /** Records a request's pull request at the code host. Causes no event. */
    readonly recordPull: (projectId: string, number: number, pull: PullBeside | null) => Stored<void>;
  }
>()("platform/store/ChangeRequests") {}
