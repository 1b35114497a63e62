/** Stored change requests and their merges (api.md 6). Adapters keep the invariants of journal.ts. */
import * as Context from "effect/Context";
import type {
  ChangeRequestCommand,
  ChangeRequestEvent,
  ChangeRequestSnapshot,
} from "../../../machines/change-request.ts";
import type { Memory, Stored, UnsettledActor } from "../../../store/ports/journal.ts";
import type { BadCursor, Taken } from "../../../store/ports/errors.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";
import type { MergeSides } from "../../../domain/repository/merge.ts";

export interface ChangeRequest {
  readonly id: string;
  readonly projectId: string;
  readonly number: number;
  readonly sessionId: string | null;
  readonly headRef: string;
  readonly baseRef: string;
  readonly title: string;
  readonly description: string;
  readonly status: "open" | "merged" | "closed";
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /**
   * The two commits that a merge joined. Of a request that is not merged: those of a merge whose outcome is unknown. Null if
   * no merge was begun.
   */
  readonly mergeSides: MergeSides | null;
  readonly merged: {
    /** The base branch's commit that contains the work. */
    readonly commit: string;
    readonly at: number;
    /** Null if it was merged at the code host. */
    readonly by: string | null;
  } | null;
  /** Where its branches were when readers were last told. */
  readonly tips: BranchTips;
  /** Its pull request at a code host. Null if it has none. */
  readonly pull: PullBeside | null;
}

/** `wanted`: about to be opened, perhaps open already. Otherwise the status last seen at the host. */
export type PullBeside =
  | { readonly status: "wanted" }
  | { readonly status: "open" | "merged" | "closed"; readonly number: number; readonly url: string };

/** Tips of a change request's branches. Null if the branch does not exist, or was not checked yet. */
export interface BranchTips {
  readonly base: string | null;
  readonly head: string | null;
}

/** A request in a list, for its reader. */
export interface ListedRequest extends ChangeRequest {
  /** Who asked the reader for a review that she still owes: of an open request, of which she has said nothing since. */
  readonly reviewAsked: { readonly by: string; readonly name: string; readonly at: number } | null;
}

export interface ListRequest extends PageRequest {
  /** Whose reviews `reviewAsked` means. Absent: no person's. */
  readonly reader?: string;
  readonly status: string | null;
  /** Only requests that propose the work of this session. */
  readonly sessionId?: string;
  /** Only requests of which the reader owes a review. */
  readonly isReviewAsked?: boolean;
}

export class ChangeRequests extends Context.Service<
  ChangeRequests,
  {
    /**
     * The memory of the requests' actors. A step that merges or closes writes the row's columns and its event in the same
     * transaction. A step that changes only the state wakes readers that wait for the project's next event.
     */
    readonly memory: Memory<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>;
    /** Requests whose actors have pending commands. Recovery loads these actors. */
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /**
     * Opens a request with its actor's first snapshot and commands. Numbers count from 1 in each project. `Taken` if the
     * head branch has an open request.
     */
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
    readonly byId: (id: string) => Stored<ChangeRequest | null>;
    /** The newest request whose pull request at the code host has this number. */
    readonly byPull: (projectId: string, pullNumber: number) => Stored<ChangeRequest | null>;
    /** The open request of a branch. */
    readonly findOpen: (projectId: string, headRef: string) => Stored<ChangeRequest | null>;
    /** The newest request of a branch that was merged into that other branch. With `before`, of those with a lower number. */
    readonly findMerged: (
      projectId: string,
      branches: { readonly headRef: string; readonly baseRef: string; readonly before?: number },
    ) => Stored<ChangeRequest | null>;
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
      look: { readonly tips: BranchTips; readonly now: number },
    ) => Stored<void>;
    /** Changes what people read. Tells the request's readers (`change_request.updated`). @returns null if the request does not exist */
    readonly edit: (
      projectId: string,
      number: number,
      change: { readonly title?: string; readonly description?: string; readonly now: number },
    ) => Stored<ChangeRequest | null>;
    /** Newest first. */
    readonly list: (projectId: string, request: ListRequest) => Stored<Page<ListedRequest>, BadCursor>;
    /** Of all projects of the account in which the person has a role. A `userId` of null is the whole account. */
    readonly listForReader: (
      scope: { readonly accountId: string; readonly userId: string | null },
      request: ListRequest,
    ) => Stored<Page<ListedRequest>, BadCursor>;
    /**
     * A project's requests that are open, or whose pull request at the code host may be open. Ended ones first, by
     * number, at most `limit`.
     */
    readonly withPulls: (projectId: string, limit: number) => Stored<readonly ChangeRequest[]>;
    /** Records a request's pull request at the code host. Causes no event. */
    readonly recordPull: (projectId: string, number: number, pull: PullBeside | null) => Stored<void>;
  }
>()("platform/change-requests/ChangeRequests") {}
