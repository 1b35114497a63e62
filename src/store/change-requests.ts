/** What the service remembers of change requests (api.md 6). An adapter's invariants are those of port.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";
import type { BadCursor, Taken } from "./port.ts";
import type { ChangeRequest, MergeSides, Page, PageRequest } from "./records.ts";

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
      readonly now: number;
    }) => Stored<ChangeRequest, Taken>;
    readonly get: (projectId: string, number: number) => Stored<ChangeRequest | null>;
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
      merge: MergeSides & { readonly commit: string; readonly by: string; readonly now: number },
    ) => Stored<ChangeRequest | null>;
    /** Closes it where it is open. @returns the request as it is then; null where there is none. */
    readonly close: (projectId: string, number: number, now: number) => Stored<ChangeRequest | null>;
  }
>()("platform/store/ChangeRequests") {}
