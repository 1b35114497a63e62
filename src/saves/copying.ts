/** Gives a session that is about to begin the saved work of another one of its project. */
import * as Effect from "effect/Effect";
import type { CopiedSave, CopyRequest, SavePlace } from "./port.ts";
import type { SaverParts } from "./saving.ts";
import { gitError } from "./saves-repository.ts";
import { type Save, SaveStoreError } from "./store.ts";
import { savedWords } from "./words.ts";

/** The branch of each session has its id as its name. The copy has the other session's branch. */
const moveBranch = (save: Save, from: string, to: string): Save => {
  const [before, after] = [`refs/heads/${from}`, `refs/heads/${to}`];
  const rename = <Ref extends string | null>(ref: Ref): Ref | string => (ref === before ? after : ref);
  return {
    ...save,
    head: { ...save.head, ref: rename(save.head.ref) },
    // Repositories inside the workspace have branches of their own.
    commits: save.commits.map((one) =>
      one.repository === ""
        ? Object.assign({}, one, { ref: rename(one.ref), within: rename(one.within) })
        : one,
    ),
  };
};

const newest = Effect.fnUntraced(function* (
  place: SavePlace,
  { options, store }: Pick<SaverParts, "options" | "store">,
) {
  yield* options.takeOldSave(place);
  const { last, earlier } = yield* store.load(place);
  return last ?? earlier.at(-1) ?? null;
});

/** @returns null if there is no such save */
export const copying = Effect.fnUntraced(
  function* (request: CopyRequest, { options, store }: Pick<SaverParts, "options" | "store">) {
    const { projectId, sessionId, turn, to } = request;
    const source = yield* turn === null ? newest(request, { options, store }) : store.ofTurn(request, turn);
    if (source === null) return null;
    const save = moveBranch(source, sessionId, to);
    yield* store.copy(request, { sessionId: to, save });
    const outcome = {
      last: save,
      earlier: [],
      pending: null,
      error: null,
      wip: null,
      elsewhere: [],
      lookedAt: null,
    };
    const redactor = yield* options.redactor(projectId);
    const words = savedWords({ ...outcome, nodeId: options.nodeId }, redactor);
    return { base: save.base, saved: words } satisfies CopiedSave;
  },
  Effect.mapError((error) => (error instanceof SaveStoreError ? gitError(error) : error)),
);
