/**
 * Admission of sessions. Requests of one account that arrive while a decision is under way are decided together with
 * the next one (api.md 4: at most 256 fires and 4 MiB a batch). The decision itself is one store operation, fenced by
 * conditions in SQL, so any node or fiber may make it.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { ROOT } from "../../domain/service/span.ts";
import { Faults } from "../../store/ports/faults.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import {
  Admissions,
  isAnswerTo,
  type Admission,
  type AdmissionOf,
  type AdmissionRequest,
  type FireFailure,
  type WishKind,
} from "../../store/ports/triggers/admissions.ts";
import { Actors } from "../actors.ts";
import { Measures, seconds, Traces, type MeasuresApi, type TracesApi } from "../../telemetry/port.ts";
import { Doubt } from "../doubt.ts";
import { RoomWish } from "./room-wishes.ts";

const BATCH_REQUESTS = 256;
const BATCH_BYTES = 4 * 1024 * 1024;
/** How many requests of one account may wait for a decision. Beyond that, callers must try again later. */
const WAITING_MAX = 4096;

/** Too many requests of this account are waiting for a decision: 503 with Retry-After. */
export class AdmissionBusy extends Schema.TaggedError<AdmissionBusy>()("AdmissionBusy", {
  waiting: Schema.Finite,
}) {}

/** The answer to a request, after the commit: the decision, or the error. */
export type AdmissionExit<Kind extends WishKind> = Exit.Exit<AdmissionOf<Kind>, StoreError | AdmissionBusy>;

type AnyExit = AdmissionExit<WishKind>;

interface Wish {
  readonly request: AdmissionRequest;
  readonly answer: (exit: AnyExit) => void;
}

interface Gathering {
  readonly wishes: Wish[];
  deciding: boolean;
}

export class Admitter extends Context.Service<
  Admitter,
  {
    /** Decides one request and answers after the commit. By then the admitted session's actor has been woken. */
    readonly admit: <Kind extends WishKind>(
      accountId: string,
      request: AdmissionRequest & { readonly kind: Kind },
    ) => Effect.Effect<AdmissionOf<Kind>, StoreError | AdmissionBusy>;
    /** The same without Effect, for the webhook receiver: one fiber for each request would double its cost. */
    readonly offer: <Kind extends WishKind>(
      accountId: string,
      request: AdmissionRequest & { readonly kind: Kind },
      answer: (exit: AdmissionExit<Kind>) => void,
    ) => void;
  }
>()("platform/services/Admitter") {}

const makeAdmitter = Effect.gen(function* () {
  const admissions = yield* Admissions;
  const actors = yield* Actors;
  const faults = yield* Faults;
  const [doubt, wishRoom] = [yield* Doubt, yield* RoomWish];
  const scope = yield* Effect.scope;
  const run = Effect.runForkWith(yield* Effect.context());
  const gatherings = new Map<string, Gathering>();

  const signalDrain = (accountId: string) =>
    Effect.asVoid(Effect.forkIn(Effect.ignore(actors.account(accountId, { type: "fire.queued" })), scope));

  /**
   * Wakes the actors that have work now. A free slot wakes a fire that waits for one; this wakes a fire that found a
   * free slot. A person's request that waits wakes the sweeper.
   */
  const followUp = (
    accountId: string,
    answers: readonly Admission[],
    requests: readonly AdmissionRequest[],
  ): Effect.Effect<void> =>
    Effect.gen(function* () {
      for (const [index, answer] of answers.entries()) {
        if (answer.outcome === "admitted") yield* actors.wake("session", answer.sessionId);
        if (answer.outcome === "queued" && requests[index]?.kind === "request") wishRoom();
        if (answer.outcome === "failed" || answer.outcome === "dropped")
          yield* logFailed(accountId, answer, requests[index]);
      }
      if (answers.some((answer) => answer.outcome === "queued" && answer.slotIsFree))
        yield* signalDrain(accountId);
    });

  const decide = Effect.fnUntraced(function* (accountId: string, batch: readonly Wish[]) {
    const requests = batch.map(({ request }) => request);
    const exit = yield* Effect.exit(admissions.admit(accountId, requests));
    if (Exit.isFailure(exit)) {
      // The decision may have been committed, so its sessions may need a wake.
      doubt();
      const failure = Exit.failCause(exit.cause);
      return yield* answerAll(batch, () => failure);
    }
    faults("admission.committed");
    // Recovery wakes the actors that this fails to wake.
    yield* Effect.catchCause(followUp(accountId, exit.value, requests), (cause) =>
      Effect.logError("an admission's actors could not be woken; recovery wakes them", cause),
    );
    yield* answerAll(batch, (index) => {
      const answer = exit.value[index];
      return answer === undefined
        ? Exit.die(new Error("the store left a wish without an answer"))
        : Exit.succeed(answer);
    });
  });

  const decideAll = (accountId: string, gathering: Gathering): Effect.Effect<void> =>
    Effect.gen(function* () {
      while (gathering.wishes.length > 0) yield* decide(accountId, takeBatch(gathering.wishes));
      gathering.deciding = false;
      gatherings.delete(accountId);
    });

  const offer = <Kind extends WishKind>(
    accountId: string,
    request: AdmissionRequest & { readonly kind: Kind },
    answer: (exit: AdmissionExit<Kind>) => void,
  ): void => {
    const gathering = gatherings.get(accountId) ?? { wishes: [], deciding: false };
    if (gathering.wishes.length >= WAITING_MAX) {
      return answer(Exit.fail(new AdmissionBusy({ waiting: gathering.wishes.length })));
    }
    gatherings.set(accountId, gathering);
    gathering.wishes.push({ request, answer: (exit) => answer(toAdmissionExit<Kind>(request.kind, exit)) });
    if (gathering.deciding) return;
    gathering.deciding = true;
    run(Effect.forkIn(decideAll(accountId, gathering), scope));
  };
  return Admitter.of({
    offer,
    // A caller that leaves does not withdraw the request: it may be decided already.
    admit: (accountId, request) => Effect.callback((resume) => offer(accountId, request, resume)),
  });
});

/** The limits that an answer can meet. */
const LIMITS: Readonly<Partial<Record<Admission["outcome"], string>>> = {
  refused: "session_cap",
  queued: "session_cap",
  queue_full: "queue_full",
  dropped: "queue_full",
};

/** Counts an answer, and the limit that it met. */
const note = <Kind extends WishKind>(
  measures: MeasuresApi,
  exit: AdmissionExit<Kind>,
  durationSeconds: number,
): void => {
  const isBusy = Exit.isFailure(exit) && Cause.squash(exit.cause) instanceof AdmissionBusy;
  const limit = Exit.isSuccess(exit) ? LIMITS[exit.value.outcome] : isBusy ? "admission" : undefined;
  const outcome = Exit.isSuccess(exit) ? exit.value.outcome : "error";
  measures.observe("admission_seconds", { outcome }, durationSeconds);
  if (limit !== undefined) measures.count("limits_hit_total", { limit });
};

/** The beginning of an admitted session's trace: from its wish to the commit. */
const begin = (traces: TracesApi, request: AdmissionRequest, to: number): void => {
  const spanFields = { sessionId: request.session.id, from: request.now, to, failed: false };
  traces.span({ ...spanFields, name: ROOT, key: ROOT, parent: null, attributes: { by: request.kind } });
  traces.span({ ...spanFields, name: "admission", key: "admission", parent: ROOT, attributes: {} });
};

/** An admitter whose answers are measured. It stays as it is while nothing is measured. */
const withMeasures = Effect.fnUntraced(function* (admitter: Admitter["Service"]) {
  const measures = yield* Measures;
  const traces = yield* Traces;
  const clock = yield* Clock.Clock;
  if (!measures.isOn && !traces.isOn) return admitter;
  const noteAnswer = (request: AdmissionRequest, exit: AnyExit, since: number): void => {
    note(measures, exit, seconds() - since);
    const isAdmitted = Exit.isSuccess(exit) && exit.value.outcome === "admitted";
    if (traces.isOn && isAdmitted) begin(traces, request, clock.currentTimeMillisUnsafe());
  };
  return Admitter.of({
    offer: (accountId, request, answer) => {
      const since = seconds();
      admitter.offer(accountId, request, (exit) => {
        noteAnswer(request, exit, since);
        answer(exit);
      });
    },
    admit: (accountId, request) =>
      Effect.suspend(() => {
        const since = seconds();
        return Effect.onExit(admitter.admit(accountId, request), (exit) =>
          Effect.sync(() => noteAnswer(request, exit, since)),
        );
      }),
  });
});

export const admitterLayer: Layer.Layer<Admitter, never, Admissions | Actors> = Layer.effect(
  Admitter,
  Effect.flatMap(makeAdmitter, withMeasures),
);

/** Advice to the operator about a failed fire. */
const FIRE_ADVICE: Readonly<Record<FireFailure, string>> = {
  prompt_too_large: "Shorten the trigger's prompt, or use less of the delivery in it, then replay the fire.",
  prompt_empty:
    "The trigger's prompt rendered to no text for this delivery. Add words of its own to it, then replay the fire.",
  queue_full: "The account's queue is full. Raise its session cap, or fire less often.",
  no_model: "Set a model provider's key as a secret of the project, then replay the fire.",
  unknown_model:
    "The model of the trigger's agent has a provider that is unknown, or that its runtime does not speak to. Correct the agent's table, then replay the fire.",
  limit_needs_provider:
    "A limit of spend applies. Add the model provider to the account and delete its key from the project's secrets, then replay the fire.",
};

const logFailed = (
  account: string,
  { fireId, reason }: Extract<Admission, { readonly outcome: "failed" | "dropped" }>,
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

/** The answer as its kind of wish can get it. Any other answer is a defect of the store. */
const toAdmissionExit = <Kind extends WishKind>(kind: Kind, exit: AnyExit): AdmissionExit<Kind> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause);
  return isAnswerTo(kind, exit.value)
    ? Exit.succeed(exit.value)
    : Exit.die(new Error(`the store answered a wish of kind ${kind} with ${exit.value.outcome}`));
};

/**
 * If one answer throws, only its caller is affected: the others get theirs, and the account's next requests are
 * decided.
 */
const answerAll = (batch: readonly Wish[], exitAt: (index: number) => AnyExit): Effect.Effect<void> =>
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
      (defect) => Effect.logError("an admission's result could not be delivered", defect),
      { discard: true },
    );
  });

/** Takes the longest prefix within both limits, at least one request. */
function takeBatch(wishes: Wish[]): readonly Wish[] {
  let bytes = 0;
  const over = wishes.findIndex(({ request }, index) => {
    bytes += requestBytes(request);
    return index >= BATCH_REQUESTS || (index > 0 && bytes > BATCH_BYTES);
  });
  return wishes.splice(0, over === -1 ? wishes.length : over);
}

/** Roughly what a request adds to the statement: its prompt and its stored request. */
const requestBytes = ({ session, fire }: AdmissionRequest): number => {
  const prompt = fire?.prompt.is === "rendered" ? fire.prompt.text : session.initialPrompt;
  return Buffer.byteLength(prompt ?? "") + (fire?.request?.body.byteLength ?? 0);
};
