/** What the service remembers of change requests and their merges (api.md 6). Adapters keep the invariants of journal.ts. */
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
     * transaction; one that changes the state wakes readers that wait for the project's next event.
     */
    readonly memory: Memory<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand>;
    /** Ids of requests with commands that are not done: recovery loads their actors. */
    readonly unsettled: Stored<readonly string[]>;
    /** Opens it with its actor's first snapshot and commands. Numbers from 1 per project. `Taken` when the head branch has an open one. */
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
     * Those of a project that are open, or whose pull request at the code host may be: what has ended first, in the order
     * of their numbers, at most `limit`.
     */
    readonly withPulls: (projectId: string, limit: number) => Stored<readonly ChangeRequest[]>;
    /** Notes what stands beside one at the code host; no event tells of it. */
    readonly recordPull: (projectId: string, number: number, pull: PullBeside | null) => Stored<void>;
  }
>()("platform/store/ChangeRequests") {}
