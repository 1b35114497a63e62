/** Brings a session's saves back into a booting sandbox. */
import * as Effect from "effect/Effect";
import { awayWords, lackingPaths, notRestored, type Restored } from "../domain/save/saved.ts";
import { withLink } from "../services/answered.ts";
import { restoreBody } from "./restore-body.ts";
import type { RestoreRequest } from "./port.ts";
import type { SaverParts } from "./saving.ts";
import { restoredWords, shownLack } from "./words.ts";

/** A restoration's time of its own, beside the boot's deadline. */
export const RESTORE_TIMEOUT_MS = 10 * 60_000;

export const restoration = (
  request: RestoreRequest,
  { options, store, daemon, provider, sign }: SaverParts,
): Effect.Effect<Restored> =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* options.takeOldSave(request);
      const { last, earlier } = yield* store.load(request);
      const saves = [...earlier, ...(last === null ? [] : [last])];
      const link = yield* withLink(provider, request.sandboxId);
      const context = yield* sign(request.sandboxId, request.sessionId);
      const redactor = yield* options.redactor(request.projectId);
      const notes = [
        ...(request.away ?? []).map(awayWords),
        // The launch settings have the same of the last save.
        ...earlier.flatMap((save) => lackingPaths(shownLack(save, redactor))),
      ];
      const isEnd = request.part?.isLast ?? true;
      const history = isEnd ? yield* store.history(request) : null;
      const body = yield* restoreBody(saves, { place: request, store, notes, history });
      const answer = yield* daemon.saving.restore(link, context, {
        body,
        timeoutMs: RESTORE_TIMEOUT_MS,
        ...(request.part !== undefined && { part: request.part }),
      });
      const wip = saves.length === 0 ? null : yield* options.viewCommit(request);
      return restoredWords(answer, { wip, redactor });
    }),
  ).pipe(
    Effect.catch(({ message }) => Effect.succeed(notRestored(message))),
    Effect.tap(({ files, commits, skipped, error }) =>
      Effect.logInfo("work restored", {
        session: request.sessionId,
        files,
        commits,
        skipped: skipped.length,
        error,
      }),
    ),
  );
