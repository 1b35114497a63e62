/** How a change request is opened: for a branch that its caller names, or for one that the service has just made. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { Actors } from "../../services/actors.ts";
import { GitBackend } from "../../git/port.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { ChangeRequests } from "./ports/change-requests.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import { Caller } from "../../http/api/access.ts";
import { Conflict, Unprocessable } from "../../http/api/errors.ts";

interface Proposal {
  readonly head: { readonly ref: string; readonly sessionId: string | null };
  readonly title: string;
  readonly description: string;
}

/** Proposes the branch to the project's default branch, as the caller. */
export const openRequest = Effect.fnUntraced(function* (
  project: Project,
  { head, title, description }: Proposal,
) {
  const caller = yield* Caller;
  const git = yield* GitBackend;
  const repository = { projectId: project.id };
  if ((yield* git.branchTip(repository, head.ref)) === null) {
    return yield* new Unprocessable({
      error: `The repository has no branch ${head.ref}.`,
      code: "unknown_head_ref",
    });
  }
  const {
    commits,
    base,
    filesTotal,
    head: tip,
  } = yield* git.compare(repository, { base: project.defaultBranch, head: head.ref });
  if (commits.length === 0) {
    return yield* new Unprocessable({
      error: `The branch ${head.ref} has no new commits yet. Push a commit first.`,
      code: "no_changes",
    });
  }
  // After a squash, the default branch has the changes and not the commits. Later changes of it may hide that from git.
  const former = yield* (yield* ChangeRequests).findMerged(project.id, {
    headRef: head.ref,
    baseRef: project.defaultBranch,
  });
  const isMerged = former?.mergeSides?.head === tip;
  // A commit that changes no file can be proposed.
  const has =
    filesTotal === 0 ? null : yield* git.hasChanges(repository, { branch: project.defaultBranch, head: tip });
  if (isMerged || has !== null) {
    const as = isMerged ? `, merged as ${former.merged?.commit.slice(0, 7)} (#${former.number})` : "";
    return yield* new Unprocessable({
      error: `There is nothing to propose: ${project.defaultBranch} has every change of the branch ${head.ref}${as}.`,
      code: "no_changes",
    });
  }
  const opening = yield* (yield* ChangeRequests)
    .open({
      id: yield* newUuid,
      projectId: project.id,
      sessionId: head.sessionId,
      headRef: head.ref,
      baseRef: project.defaultBranch,
      title,
      description,
      createdBy: caller.user.id,
      tips: { base, head: tip },
      now: yield* Clock.currentTimeMillis,
    })
    .pipe(
      withAudit(({ number }) => ({
        action: "change_request.opened",
        target: `#${number}`,
        changes: { number, head_ref: head.ref, base_ref: project.defaultBranch },
      })),
      Effect.catchTag("Taken", () =>
        Effect.fail(
          new Conflict({
            error: `The branch ${head.ref} already has an open change request.`,
            code: "already_open",
          }),
        ),
      ),
    );
  yield* (yield* Actors).wake("changeRequest", opening.id);
  return opening;
});
