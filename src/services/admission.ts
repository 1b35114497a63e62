/**
 * Admission of sessions: wishes of one account that arrive while a decision is under way are decided together with
 * the next (api.md 4: at most 256 fires and 4 MiB a batch). The decision itself is one store operation, fenced by
 * conditions in SQL, so it does not matter which node or fiber makes it.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { Faults } from "../store/ports/faults.ts";
import type { StoreError } from "../store/ports/journal.ts";
import {
  Admissions,
  type Admission,
  type AdmissionRequest,
  type FireFailure,
} from "../store/ports/admissions.ts";
import { Actors } from "../actors/actors.ts";
import { Doubt } from "../duties/recovery.ts";

const BATCH_REQUESTS = 256;
const BATCH_BYTES = 4 * 1024 * 1024;
/** Wishes of one account that may wait for a decision; beyond, callers are told to come back. */
const WAITING_MAX = 4096;

/** Too many wishes of this account are waiting for a decision: 503 with Retry-After. */
export class AdmissionBusy extends Schema.TaggedError<AdmissionBusy>()("AdmissionBusy", {
  waiting: Schema.Finite,
}) {}

/** What a wish is answered with, after the commit: the decision, or why there is none. */
export type AdmissionExit = Exit.Exit<Admission, StoreError | AdmissionBusy>;

interface Wish {
  readonly request: AdmissionRequest;
  readonly answer: (exit: AdmissionExit) => void;
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
    /** The same below Effect, for the webhook receiver, whose cost a fiber a request would double. */
    readonly offer: (
      accountId: string,
      request: AdmissionRequest,
      answer: (exit: AdmissionExit) => void,
    ) => void;
  }
>()("platform/actors/Admitter") {}

export const admitterLayer: Layer.Layer<Admitter, never, Admissions | Actors> = Layer.effect(
  Admitter,
  Effect.gen(function* () {
    const admissions = yield* Admissions;
    const actors = yield* Actors;
    const faults = yield* Faults;
    const doubt = yield* Doubt;
    const scope = yield* Effect.scope;
    const run = Effect.runForkWith(yield* Effect.context());
    const gatherings = new Map<string, Gathering>();

    const signalDrain = (accountId: string) =>
      Effect.asVoid(Effect.forkIn(Effect.ignore(actors.account(accountId, { type: "fire.queued" })), scope));

    /** Whose turn it is by now. A fire that waits for a slot is woken by the slot; one that found a free one by this. */
    const followUp = (
      accountId: string,
      answers: readonly Admission[],
      requests: readonly AdmissionRequest[],
    ): Effect.Effect<void> =>
      Effect.gen(function* () {
        for (const [index, answer] of answers.entries()) {
          if (answer.outcome === "admitted") yield* actors.wake("session", answer.sessionId);
          if (answer.outcome === "failed") yield* logFailed(accountId, answer, requests[index]);
        }
        if (answers.some((answer) => answer.outcome === "queued" && answer.slotIsFree)) {
          yield* signalDrain(accountId);
        }
      });

    const decide = Effect.fnUntraced(function* (accountId: string, batch: readonly Wish[]) {
      const requests = batch.map(({ request }) => request);
      const exit = yield* Effect.exit(admissions.admit(accountId, requests));
      if (Exit.isFailure(exit)) {
        // It may have been committed, its sessions asleep.
        doubt();
        const failed = Exit.failCause(exit.cause);
        return yield* answerAll(batch, () => failed);
      }
      faults("admission.committed");
      // Recovery wakes what this leaves asleep.
      yield* Effect.catchCause(followUp(accountId, exit.value, requests), (cause) =>
        Effect.logError("an admission was not followed up", cause),
      );
      yield* answerAll(batch, (index) => exitOf(exit.value[index]));
    });

    const decideAll = (accountId: string, gathering: Gathering): Effect.Effect<void> =>
      Effect.gen(function* () {
        while (gathering.wishes.length > 0) yield* decide(accountId, takeBatch(gathering.wishes));
        gathering.deciding = false;
        gatherings.delete(accountId);
      });

    const offer = (
      accountId: string,
      request: AdmissionRequest,
      answer: (exit: AdmissionExit) => void,
    ): void => {
      const gathering = gatherings.get(accountId) ?? { wishes: [], deciding: false };
      if (gathering.wishes.length >= WAITING_MAX) {
        return answer(Exit.fail(new AdmissionBusy({ waiting: gathering.wishes.length })));
      }
      gatherings.set(accountId, gathering);
      gathering.wishes.push({ request, answer });
      if (gathering.deciding) return;
      gathering.deciding = true;
      run(Effect.forkIn(decideAll(accountId, gathering), scope));
    };
    return Admitter.of({
      offer,
      // A caller who leaves does not take the wish back: it may be decided already.
      admit: (accountId, request) => Effect.callback((resume) => offer(accountId, request, resume)),
    });
  }),
);

/** What an operator can do about a fire that failed. */
const FIRE_ADVICE: Readonly<Record<FireFailure, string>> = {
  prompt_too_large: "Shorten the trigger's prompt, or use less of the delivery in it, then replay the fire.",
  queue_full: "The account's queue is full. Raise its session cap, or fire less often.",
  no_model: "Set a model provider's key as a secret of the project, then replay the fire.",
};

const logFailed = (
  account: string,
  { fireId, reason }: Extract<Admission, { readonly outcome: "failed" }>,
  request: AdmissionRequest | undefined,
) =>
  Effect.logWarning("a fire failed", {
    account,
    project: request?.session.projectId ?? null,
    trigger: request?.fire?.triggerSlug ?? null,
    fire: fireId,
    code: reason,
    todo: FIRE_ADVICE[reason],
  });

const exitOf = (admission: Admission | undefined): AdmissionExit =>
  admission === undefined
    ? Exit.die(new Error("the store left a wish without an answer"))
    : Exit.succeed(admission);

/** An answer that throws is its asker's alone: the others have theirs, and the account's next wishes are decided. */
const answerAll = (batch: readonly Wish[], exitAt: (index: number) => AdmissionExit): Effect.Effect<void> =>
  Effect.suspend(() => {
    const defects = batch.flatMap(({ answer }, index) => {
      try {
        answer(exitAt(index));
        return [];
      } catch (defect) {
        return [defect];
      }
    });
    return Effect.forEach(
      defects,
      (defect) => Effect.logError("an admission's answer could not be given", defect),
      { discard: true },
    );
  });

/** Takes the longest prefix within both limits, at least one wish. */
function takeBatch(wishes: Wish[]): readonly Wish[] {
  let bytes = 0;
  const over = wishes.findIndex(({ request }, index) => {
    bytes += bytesOf(request);
    return index >= BATCH_REQUESTS || (index > 0 && bytes > BATCH_BYTES);
  });
  return wishes.splice(0, over === -1 ? wishes.length : over);
}

/** About what a wish adds to the statement: its prompt and its stored request. */
const bytesOf = ({ session, fire }: AdmissionRequest): number => {
  const prompt = fire?.prompt.is === "rendered" ? fire.prompt.text : session.initialPrompt;
  return Buffer.byteLength(prompt ?? "") + (fire?.request?.body.byteLength ?? 0);
};
