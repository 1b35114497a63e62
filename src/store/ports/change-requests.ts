/** Stored change requests and their merges (api.md 6). Adapters keep the invariants of journal.ts. */
import * as Context from "effect/Context";
import type {
  ChangeRequestCommand,
  ChangeRequestEvent,
  ChangeRequestSnapshot,
} from "../../machines/change-request.ts";
import type { Memory, Stored } from "./journal.ts";
import type { BadCursor, Taken } from "./errors.ts";
import type { BranchTips, ChangeRequest, Page, PageRequest, PullBeside } from "./records.ts";

export class ChangeRequests extends Context.Service<
  ChangeRequests,
  {
    /**
     * The memory of the requests' actors. A step that merges or closes writes the row's columns and its event in the same
     * transaction. A step that changes only the state wakes readers that wait for the project's next event.
     */
    readonly memory: Memory<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>;
    /** Ids of requests whose actors have pending commands. Recovery loads these actors. */
    readonly unsettled: Stored<readonly string[]>;
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
     * A project's requests that are open, or whose pull request at the code host may be open. Ended ones first, by
     * number, at most `limit`.
     */
    readonly withPulls: (projectId: string, limit: number) => Stored<readonly ChangeRequest[]>;
    /** Records a request's pull request at the code host. Causes no event. */
    readonly recordPull: (projectId: string, number: number, pull: PullBeside | null) => Stored<void>;
  }
>()("platform/store/ChangeRequests") {}
