/** What the service remembers of change requests (api.md 6). Adapters keep the invariants of journal.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";
import type { BadCursor, Taken } from "./errors.ts";
import type { BranchTips, ChangeRequest, MergeSides, Page, PageRequest, PullBeside } from "./records.ts";

export class ChangeRequests extends Context.Service<
  ChangeRequests,
  {
    /** Numbers from 1 per project. `Taken` when the head branch has an open one. */
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
    /** The open one of a branch. */
    readonly openOf: (projectId: string, headRef: string) => Stored<ChangeRequest | null>;
    /** Open ones by project and head branch, from behind `after` on: of one project, or of all of them. */
    readonly allOpen: (request: {
      readonly projectId: string | null;
      readonly after: Pick<ChangeRequest, "projectId" | "headRef"> | null;
      readonly limit: number;
    }) => Stored<readonly ChangeRequest[]>;
    /**
     * Says where its branches stand. Where that is news of an open request its readers are told in the same transaction
     * (`change_request.updated`); else nothing happens.
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
     * Notes what a merge is about to bring together, before git is asked (save, then act): whoever finds the work in the
     * base branch later knows by this that it was this request's merge that put it there. False where it is not open.
     */
    readonly beginMerge: (projectId: string, number: number, sides: MergeSides) => Stored<boolean>;
    /**
     * Says that git has merged it. A request that was closed in the meantime becomes merged too, since the work is in
     * the base branch; one that is merged already stays as it is.
     * @returns the request as it is then; null where there is none.
     */
    readonly recordMerge: (
      projectId: string,
      number: number,
      merge: MergeSides & { readonly commit: string; readonly by: string | null; readonly now: number },
    ) => Stored<ChangeRequest | null>;
    /** Closes it where it is open. @returns the request as it is then; null where there is none. */
    readonly close: (projectId: string, number: number, now: number) => Stored<ChangeRequest | null>;
    /**
     * Those of a project that are open, or whose pull request at the code host may be: what has ended first, in the order
     * of their numbers, at most `limit`.
     */
    readonly withPulls: (projectId: string, limit: number) => Stored<readonly ChangeRequest[]>;
    /** Notes what stands beside one at the code host; no event tells of it. */
    readonly recordPull: (projectId: string, number: number, pull: PullBeside | null) => Stored<void>;
  }
>()("platform/store/ChangeRequests") {}
