/**
 * Removes sandboxes that no record holds (threats.md I9): a destruction that reported success but failed, a create that
 * ended after its record, or a database that was restored from a backup. The opposite case, a record without its
 * sandbox, is noticed by the actor that watches it. It lists the sandboxes at start and on a timer, and takes no input.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { parseUuid } from "../domain/ids.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { answeredInTime } from "../services/answered.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";

/** How many removals run at a time. */
const CONCURRENCY = 4;

/** One look. Anything that cannot be listed or removed is retried by the next look. */
export const removeOrphans = Effect.gen(function* () {
  const provider = yield* SandboxProvider;
  const { unheld } = yield* Sandboxes;
  // Sandboxes are listed first: a sandbox's record is older than the sandbox, so each listed one already has its
  // record.
  const ids = (yield* answeredInTime("list", provider.list)).map(({ id }) => id);
  const nameless = ids.filter((id) => parseUuid(id) === null);
  const ownIds = ids.filter((id) => parseUuid(id) !== null);
  const orphans = [...nameless, ...(ownIds.length === 0 ? [] : yield* unheld(ownIds))];
  yield* Effect.forEach(
    orphans,
    (id) =>
      Effect.logWarning("a sandbox without a record is removed", { sandbox: id }).pipe(
        Effect.andThen(answeredInTime("destroy", provider.destroy(id))),
        Effect.catchTag("SandboxError", cannot),
      ),
    { concurrency: CONCURRENCY, discard: true },
  );
}).pipe(Effect.catchTag("SandboxError", (error) => cannot(error)));

const cannot = (error: { readonly operation: string; readonly message: string }) =>
  Effect.logError("sandboxes could not be compared with their records; trying again", { error });

export const orphansLayer = Layer.effectDiscard(
  runDuty("orphans", { round: removeOrphans, periodMs: DUTIES.orphans.periodMs }),
);
