/**
 * Admission of sessions: wishes of one account that arrive while a decision is under way are decided together with
 * the next (api.md 4: at most 256 fires and 4 MiB a batch). The decision itself is one store operation, fenced by
 * conditions in SQL, so it does not matter which node or fiber makes it.
 */
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import type { StoreError } from "../store/journal.ts";
import { Admissions, type Admission, type AdmissionRequest } from "../store/port.ts";
import { Actors } from "./actors.ts";

const BATCH_REQUESTS = 256;
const BATCH_BYTES = 4 * 1024 * 1024;
/** Wishes of one account that may wait for a decision; beyond, callers are told to come back. */
const WAITING_MAX = 4096;

/** Too many wishes of this account are waiting for a decision: 503 with Retry-After. */
export class AdmissionBusy extends Schema.TaggedError<AdmissionBusy>()("AdmissionBusy", {
  waiting: Schema.Finite,
}) {}

interface Wish {
  readonly request: AdmissionRequest;
  readonly answer: Deferred.Deferred<Admission, StoreError>;
}

interface Gathering {
  readonly wishes: Wish[];
  deciding: boolean;
}

export class Admitter extends Context.Service<
  Admitter,
  {
    /** Decides one wish; answers after the commit. The admitted session's actor has been woken. */
    readonly admit: (
      accountId: string,
      request: AdmissionRequest,
    ) => Effect.Effect<Admission, StoreError | AdmissionBusy>;
  }
>()("platform/actors/Admitter") {}

export const admitterLayer: Layer.Layer<Admitter, never, Admissions | Actors> = Layer.effect(
  Admitter,
  Effect.gen(function* () {
    const admissions = yield* Admissions;
    const actors = yield* Actors;
    const scope = yield* Effect.scope;
    const gatherings = new Map<string, Gathering>();

    const followUp = (accountId: string, admission: Admission): Effect.Effect<void> => {
      if (admission.outcome === "admitted") return actors.wake("session", admission.sessionId);
      // A queued fire finds its slot by itself when one was freed between the decision and now.
      return admission.outcome === "queued"
        ? Effect.asVoid(
            Effect.forkIn(Effect.ignore(actors.account(accountId, { type: "fire.queued" })), scope),
          )
        : Effect.void;
    };

    const decide = (accountId: string, batch: readonly Wish[]): Effect.Effect<void> =>
      Effect.matchCauseEffect(
        admissions.admit(
          accountId,
          batch.map(({ request }) => request),
        ),
        {
          onFailure: (cause) =>
            Effect.forEach(batch, ({ answer }) => Deferred.failCause(answer, cause), { discard: true }),
          onSuccess: (answers) =>
            Effect.forEach(
              batch,
              ({ answer }, index) => {
                const admission = answers[index];
                return admission === undefined
                  ? Deferred.die(answer, new Error("the store left a wish without an answer"))
                  : Effect.andThen(followUp(accountId, admission), Deferred.succeed(answer, admission));
              },
              { discard: true },
            ),
        },
      );

    const decideAll = (accountId: string, gathering: Gathering): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (gathering.wishes.length > 0) yield* decide(accountId, takeBatch(gathering.wishes));
        gathering.deciding = false;
        gatherings.delete(accountId);
      });

    return Admitter.of({
      admit: Effect.fnUntraced(function* (accountId, request) {
        const gathering = gatherings.get(accountId) ?? { wishes: [], deciding: false };
        if (gathering.wishes.length >= WAITING_MAX) {
          return yield* new AdmissionBusy({ waiting: gathering.wishes.length });
        }
        gatherings.set(accountId, gathering);
        const answer = Deferred.makeUnsafe<Admission, StoreError>();
        gathering.wishes.push({ request, answer });
        if (!gathering.deciding) {
          gathering.deciding = true;
          yield* Effect.forkIn(decideAll(accountId, gathering), scope);
        }
        // A caller who leaves does not take the wish back: it may be decided already.
        return yield* Deferred.await(answer);
      }),
    });
  }),
);

/** Takes the longest prefix within both limits, at least one wish. */
function takeBatch(wishes: Wish[]): readonly Wish[] {
  let bytes = 0;
  const over = wishes.findIndex(({ request }, index) => {
    bytes += Buffer.byteLength(request.session.initialPrompt ?? "");
    return index >= BATCH_REQUESTS || (index > 0 && bytes > BATCH_BYTES);
  });
  return wishes.splice(0, over === -1 ? wishes.length : over);
}
