/** What people say of a change request: the table change_request_remarks. */
import * as Context from "effect/Context";
import type { BadCursor } from "../../../store/ports/errors.ts";
import type { Stored } from "../../../store/ports/journal.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";
import type { RemarkKind, Verdict } from "../rules/verdicts.ts";
import type { ChangeRequest } from "./change-requests.ts";

/** How many remarks a change request may have. */
export const REMARKS_MAX = 1000;

/** Lines of a file, from 1, on one side of the comparison. */
export interface RemarkPlace {
  readonly file: string;
  readonly side: "base" | "head";
  readonly firstLine: number;
  readonly lastLine: number;
}

export interface Remark {
  readonly id: string;
  readonly requestId: string;
  readonly kind: RemarkKind;
  /** Markdown. */
  readonly body: string;
  /** The head commit that its author saw. Null if the branch did not exist. */
  readonly commit: string | null;
  readonly place: RemarkPlace | null;
  /** The remark that this answers, which answers none itself. */
  readonly replyTo: string | null;
  readonly createdBy: string;
  readonly createdByName: string;
  readonly createdAt: number;
  readonly editedAt: number | null;
  readonly resolved: { readonly by: string; readonly at: number } | null;
}

export type NewRemark = Omit<Remark, "createdByName" | "editedAt" | "resolved">;

/** A person's newest verdict, with her name. */
export interface NamedVerdict extends Verdict {
  readonly name: string;
}

/** Each change tells the readers of the request (`change_request.updated`). */
export class Remarks extends Context.Service<
  Remarks,
  {
    /** @returns null if the request has REMARKS_MAX already, or the remark that it answers is gone */
    readonly add: (request: ChangeRequest, remark: NewRemark) => Stored<Remark | null>;
    readonly get: (requestId: string, id: string) => Stored<Remark | null>;
    /** The oldest first. */
    readonly list: (requestId: string, page: PageRequest) => Stored<Page<Remark>, BadCursor>;
    /** @returns null if the remark does not exist */
    readonly edit: (
      request: ChangeRequest,
      id: string,
      change: { readonly body: string; readonly at: number },
    ) => Stored<Remark | null>;
    /** Resolves it, or opens it again. @returns null if the remark does not exist */
    readonly resolve: (
      request: ChangeRequest,
      id: string,
      change: { readonly by: string | null; readonly at: number },
    ) => Stored<Remark | null>;
    /** With its answers. @returns whether it existed */
    readonly remove: (request: ChangeRequest, id: string, at: number) => Stored<boolean>;
    /** The newest verdict of each person, the oldest first. */
    readonly verdicts: (requestId: string) => Stored<readonly NamedVerdict[]>;
  }
>()("platform/change-requests/Remarks") {}
