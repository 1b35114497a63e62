/**
 * Actions after a push through this service: it checks the project's open change requests, stores what the sessions' branches
 * change, and tells the pusher where to propose the work, or where it is proposed already.
 */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { noteWork } from "../../services/sessions/session-work.ts";
import { ProposedWork } from "../../services/sessions/proposed-work.ts";
import { RequestBranches } from "../../services/triggers/request-branches.ts";
import { initialCommit, isSessionBranch } from "../../domain/repository/git-ref.ts";
import { GitBackend } from "../../git/port.ts";
import { isDeleted, type PushHeard } from "../../git/server/pushed.ts";
import type { WritePolicy } from "../../git/server/ref-policy.ts";
import { ChangeRequests } from "./ports/change-requests.ts";
import { Faults } from "../../store/ports/faults.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Addresses, repositoryUrl } from "../../http/limits.ts";

/** How many branches of one push get a message. The pusher of more branches gets none for the others. */
const BRANCHES_TOLD = 3;

/** Names that a shell reads literally. Other names never appear in a command that a person may copy. */
const PLAIN_NAME = /^[A-Za-z0-9._/-]+$/;

interface Place {
  readonly publicUrl: string;
  readonly projectId: string;
}

const openedAdvice = ({ publicUrl, projectId }: Place, branch: string, number: number): readonly string[] => [
  "",
  `${branch} is the branch of change request #${number}:`,
  `  ${publicUrl}/#/projects/${projectId}/change-requests/${number}`,
  "",
];

/** In a session's sandbox, the command finds its project and branch by itself. Elsewhere they are arguments. */
const proposal = (
  { publicUrl, projectId }: Place,
  branch: string,
  { writer }: WritePolicy,
): readonly string[] => {
  const which = writer.kind === "session" ? "" : ` --project ${projectId} --head ${branch}`;
  const page = isSessionBranch(branch) ? `sessions/${branch}` : "change-requests";
  return [
    "",
    `To merge ${branch}, open a change request:`,
    ...(PLAIN_NAME.test(branch) ? [`  platform cr create${which} --title "..."`] : []),
    `  ${publicUrl}/#/projects/${projectId}/${page}`,
    "",
  ];
};

/** For a branch that shares no commit with the empty default branch of a new project: a change request could not be merged. */
const beginning = (place: Place, branch: string, defaultBranch: string): readonly string[] => [
  "",
  `${branch} and ${defaultBranch} have unrelated histories, and ${defaultBranch} of this project is still empty.`,
  ...(PLAIN_NAME.test(branch)
    ? [
        `To make ${branch} its content:`,
        `  git push --force ${repositoryUrl(place, place.projectId)} ${branch}:${defaultBranch}`,
      ]
    : []),
  "",
];

/** Whether the branch began elsewhere than the new project. Only a new project is asked: its comparison is short. */
const isUnrelated = Effect.fnUntraced(function* (
  projectId: string,
  branch: string,
  base: string | undefined,
) {
  if (base === undefined) return false;
  const git = yield* GitBackend;
  if ((yield* git.branchTip({ projectId }, base)) !== initialCommit) return false;
  return (yield* git.compare({ projectId }, { base, head: branch })).mergeBase === null;
});

/** Listens to one caller's pushes to one project. */
export const pushHeard = Effect.fnUntraced(function* (projectId: string, policy: WritePolicy) {
  const { moved } = yield* RequestBranches;
  const { findOpen } = yield* ChangeRequests;
  const { publicUrl } = yield* Addresses;
  const faults = yield* Faults;
  const place = { publicUrl, projectId };
  const context = yield* Effect.context<GitBackend | ProposedWork | Sessions>();
  const advice = (branch: string, base: string | undefined) =>
    isUnrelated(projectId, branch, base).pipe(
      Effect.provideContext(context),
      Effect.orElseSucceed(() => false),
      Effect.map((is) =>
        is && base !== undefined ? beginning(place, branch, base) : proposal(place, branch, policy),
      ),
    );
  const onPush: PushHeard = Effect.fnUntraced(function* (refs) {
    faults("push.written");
    yield* moved(projectId);
    const protection = yield* Effect.orElseSucceed(policy.protection, () => ({
      defaultBranches: [] as readonly string[],
    }));
    const [base] = protection.defaultBranches;
    // The pusher waits for it only for a while, and a long comparison ends all the same.
    const noting =
      base === undefined
        ? null
        : yield* noteWork({ projectId, defaultBranch: base }, refs).pipe(
            Effect.provideContext(context),
            Effect.forkDetach,
          );
    const branches = refs
      .filter((target) => target.ref.startsWith("refs/heads/") && !isDeleted(target))
      .map(({ ref }) => ref.slice("refs/heads/".length))
      .filter((branch) => !protection.defaultBranches.includes(branch));
    const advices = yield* Effect.forEach(branches.slice(0, BRANCHES_TOLD), (branch) =>
      findOpen(projectId, branch).pipe(
        Effect.flatMap((request) =>
          request === null
            ? advice(branch, base)
            : Effect.succeed(openedAdvice(place, branch, request.number)),
        ),
        // The push has succeeded, and a database outage must not make it look failed.
        Effect.orElseSucceed(() => []),
      ),
    );
    if (noting !== null) yield* Fiber.join(noting);
    return advices.flat();
  });
  return onPush;
});
