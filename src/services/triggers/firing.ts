/**
 * Fires a trigger: a cron instant, a webhook or a person's request becomes a request for a session (spec 6 "Trigger
 * firing", api.md 4 "Admission"). Every authentic fire gets its ledger row before its caller is answered.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { uuidV7 } from "../../domain/ids.ts";
import { cronVariables, renderPrompt, type JsonObject } from "../../domain/trigger/prompt.ts";
import { fireTitle } from "../../domain/trigger/title.ts";
import type { CronTriggerDefinition, TriggerDefinition } from "../../domain/trigger/trigger.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { Admission, AdmissionOf, FireWish } from "../../store/ports/triggers/admissions.ts";
import type {
  FirePrompt,
  NewFire,
  StoredRequest,
  TriggerFireKind,
  VerifiedWith,
} from "../../store/ports/triggers/fires.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import type { NewSession } from "../../store/ports/sessions/sessions.ts";
import { Admitter, type AdmissionBusy, type AdmissionExit } from "./admission.ts";
import { Directory } from "../directory.ts";
import { Entropy, UUID_BYTES } from "../entropy.ts";
import type { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import { Runtimes } from "../projects/runtimes.ts";
import { logMissingSecrets } from "../projects/required-secrets.ts";
import type { AccountProvider } from "../../domain/sandbox/account-provider.ts";
import { credentialOwner } from "../connectors/own-credentials.ts";
import { AccountSpend } from "../projects/account-spend.ts";
import type { LimitedSession } from "../../domain/sandbox/spend.ts";
import { AccountModels } from "../projects/account-models.ts";
import { fireLimits } from "./fire-limits.ts";
import { missingModel, ModelPolicy } from "../projects/models.ts";

export interface FiringOptions {
  readonly bootTimeoutMs: number;
  readonly queueTtlMs: number;
  readonly queueMax: number;
}

/** One fire as it arrived. */
export interface FireRequest {
  readonly project: Project;
  readonly trigger: TriggerDefinition;
  readonly kind: TriggerFireKind;
  readonly prompt: FirePrompt;
  /** Of the session. */
  readonly title: string;
  /** The request that it arrived with, kept for display and for replay. */
  readonly request: StoredRequest | null;
  /** The session acts for this user: the one who fired it, otherwise the project's creator. */
  readonly userId: string;
  /** The session whose agent fires it. */
  readonly parentSessionId?: string;
  readonly deliveryId: string | null;
  /** Set for a webhook. */
  readonly verifiedWith?: VerifiedWith;
  readonly scheduledFor: number | null;
  /** The fire that this one replays. */
  readonly replayOf: string | null;
  /** Who fires it, which decides what becomes of it at the cap. */
  readonly by: FireWish["kind"];
}

export class Firing extends Context.Service<
  Firing,
  {
    readonly fire: <By extends FireWish["kind"]>(
      request: FireRequest & { readonly by: By },
    ) => Effect.Effect<AdmissionOf<By>, StoreError | AdmissionBusy>;
    /** The same without Effect, for the webhook receiver. */
    readonly offer: (
      request: FireRequest & { readonly by: "delivery" },
      answer: (exit: AdmissionExit<"delivery">) => void,
    ) => void;
  }
>()("platform/services/Firing") {}

/** The prompt of a fire, and its session's title. */
export const fireWords = (
  trigger: TriggerDefinition,
  variables: JsonObject,
): Pick<FireRequest, "prompt" | "title"> => {
  const prompt = renderPrompt(trigger.prompt, variables);
  return {
    prompt: Result.isSuccess(prompt) ? { is: "rendered", text: prompt.success } : { is: "too_large" },
    title: fireTitle(trigger, variables),
  };
};

/** The same of a schedule's instant. Its prompt is rendered when it starts: only then its last fire is known. */
export const instantWords = (
  trigger: CronTriggerDefinition,
  dueAtMs: number,
): Pick<FireRequest, "prompt" | "title"> => {
  const { prompt, slug, cron: schedule, timezone } = trigger;
  const fire = { schedule, timezone, dueAtMs };
  return {
    prompt: { is: "cron", template: { prompt, slug, ...fire } },
    title: fireTitle(trigger, cronVariables(trigger, { ...fire, lastFiredAtMs: null })),
  };
};

/** Decides whether a fire has a prompt: whether its session would have a model, and what limits of spend say. */
const makePrompting = Effect.gen(function* () {
  const directory = yield* Directory;
  const rules = { ...(yield* ModelPolicy), offered: yield* Runtimes };
  const accountModels = yield* AccountModels;
  const spend = yield* AccountSpend;
  const limits = yield* fireLimits;
  const services = yield* Effect.context<Suspensions>();
  const lackedModel = (request: FireRequest, providers: readonly AccountProvider[] = []) =>
    request.prompt.is === "skipped"
      ? null
      : missingModel(directory.known(request.project.id), request.trigger.agent, { ...rules, providers });
  /** Whether the request is admitted as it is, by what is in memory. */
  const isPlain = (request: FireRequest): boolean =>
    lackedModel(request) === null &&
    (request.prompt.is === "skipped" || !spend.mayLimit(request.project.accountId));
  /** The prompt with the account's providers and limits, which are not in memory. */
  const checkLimits = Effect.fnUntraced(function* (request: FireRequest) {
    const user = yield* Effect.provideContext(modelUser(request), services);
    const providers = yield* accountModels(user);
    const modelLack = lackedModel(request, providers);
    if (modelLack !== null) return { is: modelLack } as const;
    const { personId } = user;
    const refusal = yield* limits({
      session: limitedSession(request),
      agent: request.trigger.agent,
      personId,
    });
    return refusal ?? request.prompt;
  });
  /** The request as it is admitted. */
  const renderRequest = (request: FireRequest): Effect.Effect<FireRequest> =>
    isPlain(request)
      ? Effect.succeed(request)
      : checkLimits(request).pipe(
          Effect.map((prompt): FireRequest => ({ ...request, prompt })),
          // Unknown counts as present: the daemon checks again, and reports it. A limit holds where calls of models pass.
          Effect.orElseSucceed(() => request),
        );
  return { isPlain, prompted: renderRequest };
});

export const firingLayer = (
  options: FiringOptions,
): Layer.Layer<Firing, never, Admitter | Directory | Suspensions> =>
  Layer.effect(
    Firing,
    Effect.gen(function* () {
      const admitter = yield* Admitter;
      const clock = yield* Clock.Clock;
      const entropy = yield* Entropy;
      const directory = yield* Directory;
      const run = Effect.runForkWith(yield* Effect.context());
      const { isPlain, prompted } = yield* makePrompting;
      const wish = <By extends FireWish["kind"]>(
        request: FireRequest & { readonly by: By },
      ): FireWish & { readonly kind: By } => {
        const now = clock.currentTimeMillisUnsafe();
        const newId = () => uuidV7(now, entropy(UUID_BYTES));
        return {
          kind: request.by,
          session: newSession(request, { id: newId(), bootDeadlineAt: now + options.bootTimeoutMs }),
          fire: newFire(request, options, { id: newId(), now }),
          projectVersion: request.project.version,
          now,
        };
      };
      const logAdmission = ({ project }: FireRequest, admission: Admission): Effect.Effect<void> => {
        const knownProject = directory.known(project.id);
        if (admission.outcome === "admitted")
          return logMissingSecrets(knownProject, { session: admission.sessionId });
        if (admission.outcome === "queued")
          return logMissingSecrets(knownProject, { fire: admission.fireId });
        return Effect.void;
      };
      return Firing.of({
        fire: (request) =>
          prompted(request).pipe(
            Effect.flatMap((whole) =>
              admitter.admit(request.project.accountId, wish({ ...whole, by: request.by })),
            ),
            Effect.tap((admission) => logAdmission(request, admission)),
          ),
        offer: (request, answer) => {
          const offer = (whole: FireRequest): void =>
            admitter.offer(request.project.accountId, wish({ ...whole, by: request.by }), (exit) => {
              answer(exit);
              if (Exit.isSuccess(exit)) run(logAdmission(request, exit.value));
            });
          // One fiber for each request would double its cost.
          if (isPlain(request)) return offer(request);
          run(Effect.map(prompted(request), offer));
        },
      });
    }),
  );

/** For the limits of spend, the session of a fire. A new one has spent nothing, so its id is of no effect. */
const limitedSession = ({ project, trigger, userId, parentSessionId = "" }: FireRequest): LimitedSession => ({
  id: "",
  accountId: project.accountId,
  projectId: project.id,
  triggerSlug: trigger.slug,
  createdBy: userId,
  parentSessionId: parentSessionId === "" ? null : parentSessionId,
});

/** Whose models the session of a fire may use. One that a person fires acts for her. */
const modelUser = Effect.fnUntraced(function* ({ project, kind, userId, parentSessionId }: FireRequest) {
  const who = { accountId: project.accountId, projectId: project.id };
  if (kind !== "manual") return { ...who, personId: null };
  if (parentSessionId === undefined) return { ...who, personId: userId };
  const parent = { id: parentSessionId, origin: "session", createdBy: userId } as const;
  return { ...who, personId: yield* credentialOwner(parent) };
});

const newSession = (
  { project, trigger, title, kind, userId, parentSessionId }: FireRequest,
  { id, bootDeadlineAt }: Pick<NewSession, "id" | "bootDeadlineAt">,
): NewSession => ({
  id,
  projectId: project.id,
  accountId: project.accountId,
  baseRef: project.defaultBranch,
  baseCommit: null,
  name: title,
  agentName: trigger.agent,
  agentModel: null,
  initialPrompt: null,
  metadata: {},
  triggerSlug: trigger.slug,
  createdBy: userId,
  ...(parentSessionId !== undefined && { parentSessionId }),
  // A manual fire acts as its user. A machine's fire has the least power (api.md 1 "Origin"), even if a person replays
  // it: its prompt still contains what the machine sent.
  origin: kind === "manual" ? "session" : "trigger",
  bootDeadlineAt,
});

const newFire = (
  request: FireRequest,
  { queueTtlMs, queueMax }: FiringOptions,
  { id, now }: { readonly id: string; readonly now: number },
): NewFire => ({
  id,
  accountId: request.project.accountId,
  projectId: request.project.id,
  triggerSlug: request.trigger.slug,
  kind: request.kind,
  scheduledFor: request.scheduledFor,
  receivedAt: now,
  deliveryId: request.deliveryId,
  replayOf: request.replayOf,
  ...(request.verifiedWith !== undefined && { verifiedWith: request.verifiedWith }),
  prompt: request.prompt,
  request: request.request,
  queueTtlMs,
  queueMax,
});
