/** What the core asks about proposed work. The feature `change-requests` fills this port. */
import * as Context from "effect/Context";
import type { RequestClue } from "../../domain/trigger/event-skip.ts";
import type { ChangeRequestSnapshot } from "../../machines/change-request.ts";
import type { Stored, UnsettledActor } from "../../store/ports/journal.ts";

export class ProposedWork extends Context.Service<
  ProposedWork,
  {
    /** Change requests whose actors have pending commands. */
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /** The actor of a change request, by its number. Null if the project has no such change request. */
    readonly actor: (
      projectId: string,
      number: number,
    ) => Stored<{ readonly id: string; readonly snapshot: ChangeRequestSnapshot } | null>;
    /** The newest merge of a branch into the other one: its head then, and the commit that has the work. Null if it was not merged. */
    readonly merged: (
      projectId: string,
      branches: { readonly headRef: string; readonly baseRef: string },
    ) => Stored<{ readonly head: string; readonly commit: string } | null>;
    /** Whether a delivery is about a change request of the project, or about its pull request. */
    readonly isOwn: (
      projectId: string,
      clue: Pick<RequestClue, "changeRequestId" | "number" | "url">,
    ) => Stored<boolean>;
  }
>()("platform/services/ProposedWork") {}
