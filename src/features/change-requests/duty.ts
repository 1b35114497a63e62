/**
 * Keeps readers of open change requests up to date. A request's commits, its files and its conflicts change when one of its
 * two branches moves, and branches move outside the database. This background duty runs on a timer and a signal. It
 * compares each branch with the tip that readers were last notified about. So readers hear about a move even if the service
 * died between the push or the merge and the notification.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Semaphore from "effect/Semaphore";
import { Actors } from "../../services/actors.ts";
import { GitBackend } from "../../git/port.ts";
import { ChangeRequests, type ChangeRequest } from "./ports/change-requests.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";
import { RequestBranches } from "../../services/triggers/request-branches.ts";

export interface RequestBranchesOptions {
  /** How long a lost signal, or a branch that was moved from outside, may go untold (PLATFORM_MANIFEST_SYNC_MS). */
  readonly intervalMs: number;
}

/** Requests that are looked at in one go. */
const PAGE = 200;
/** Branch tips that are asked for at a time: each is a process of git, or a request to an upstream. */
const AT_ONCE = 4;

const requestBranches = ({ projectId, baseRef, headRef }: ChangeRequest) =>
  [
    [projectId, baseRef],
    [projectId, headRef],
  ] as const;
const branchKey = (projectId: string, branch: string): string => `${projectId} ${branch}`;

/** Compares the branches of these requests with the last notified tips, and notifies readers about moves. */
const lookAt = Effect.fnUntraced(function* (page: readonly ChangeRequest[]) {
  const git = yield* GitBackend;
  const { noteTips } = yield* ChangeRequests;
  const branches = new Map(
    page.flatMap(requestBranches).map((branch) => [branchKey(branch[0], branch[1]), branch] as const),
  );
  const tips = new Map<string, string | null>();
  yield* Effect.forEach(
    branches,
    ([name, [projectId, branch]]) =>
      // A branch that cannot be read now is read at the next look.
      Effect.ignore(Effect.map(git.branchTip({ projectId }, branch), (tip) => tips.set(name, tip))),
    { concurrency: AT_ONCE, discard: true },
  );
  const actors = yield* Actors;
  for (const { id, projectId, number, baseRef, headRef, mergeSides, tips: told } of page) {
    const base = tips.get(branchKey(projectId, baseRef));
    const head = tips.get(branchKey(projectId, headRef));
    if (base === undefined || head === undefined) continue;
    // The outcome of its last merge is unknown, and the repository answers. A request that is merging refuses this.
    if (mergeSides !== null) yield* Effect.ignore(actors.changeRequest(id, { type: "look.requested" }));
    if (base === told.base && head === told.head) continue;
    yield* noteTips(projectId, number, { tips: { base, head }, now: yield* Clock.currentTimeMillis });
  }
});

export const requestBranchesLayer = ({ intervalMs }: RequestBranchesOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { allOpen } = yield* ChangeRequests;
      const { signals } = yield* RequestBranches;
      // One at a time: a slow look would end after a newer one, and note what is old.
      const turn = yield* Semaphore.make(1);
      const look = Effect.fnUntraced(function* (projectId: string | null) {
        let after: ChangeRequest | null = null;
        do {
          const request: Parameters<typeof allOpen>[0] = { projectId, after, limit: PAGE };
          const page = yield* turn.withPermit(Effect.tap(allOpen(request), lookAt));
          after = page.length < PAGE ? null : (page.at(-1) ?? null);
        } while (after !== null);
      });
      const onSignal = Effect.gen(function* () {
        // Many moves of a project that came meanwhile are one look.
        const projects = new Set(yield* signals);
        for (const projectId of projects) yield* dutyPart("change_requests", look(projectId));
      });
      yield* Effect.forkScoped(Effect.forever(onSignal));
      // The first look finds the moves that a former process has not told.
      yield* runDuty("change_requests", { round: look(null), periodMs: intervalMs });
    }),
  );
