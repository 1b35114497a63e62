/**
 * Fires a trigger: renders its prompt and has the session admitted (spec 6 "Trigger firing", api.md 4 "Admission").
 * Whatever becomes of an authentic fire, it leaves its ledger row before anyone is answered.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import type { JsonObject } from "../domain/prompt.ts";
import { renderPrompt, type PromptTooLarge } from "../domain/prompt.ts";
import type { TriggerDefinition } from "../domain/trigger.ts";
import type { StoreError } from "../store/journal.ts";
import { Admissions, type Admission } from "../store/port.ts";
import type { FireKind, NewFire, NewSession, Project } from "../store/records.ts";
import { Admitter, type AdmissionBusy } from "./admission.ts";
import { newUuid } from "./entropy.ts";

export interface FiringOptions {
  readonly bootTimeoutMs: number;
  readonly queueTtlMs: number;
  readonly queueMax: number;
}

/** One fire as it came in. */
export interface FireRequest {
  readonly project: Project;
  readonly trigger: TriggerDefinition;
  readonly kind: FireKind;
  readonly variables: JsonObject;
  /** The user the session acts for: who fired it by hand, else who owns the account. */
  readonly userId: string;
  readonly deliveryId: string | null;
  readonly scheduledFor: number | null;
  /** What becomes of it at the cap: a person is told, a machine's fire waits. */
  readonly atCap: "refuse" | "queue";
}

export class Firing extends Context.Service<
  Firing,
  {
    readonly fire: (
      request: FireRequest,
    ) => Effect.Effect<Admission, StoreError | AdmissionBusy | PromptTooLarge>;
  }
>()("platform/actors/Firing") {}

export const firingLayer = (options: FiringOptions): Layer.Layer<Firing, never, Admitter | Admissions> =>
  Layer.effect(
    Firing,
    Effect.gen(function* () {
      const admitter = yield* Admitter;
      const admissions = yield* Admissions;
      return Firing.of({
        fire: Effect.fnUntraced(function* (request) {
          const { project, trigger } = request;
          const now = yield* Clock.currentTimeMillis;
          const fire = newFire(request, options, { id: yield* newUuid, now });
          const prompt = renderPrompt(trigger.prompt, request.variables);
          if (Result.isFailure(prompt)) {
            yield* admissions.recordFailed(fire, "prompt_too_large");
            return yield* prompt.failure;
          }
          const session: NewSession = {
            id: yield* newUuid,
            projectId: project.id,
            accountId: project.accountId,
            baseRef: project.defaultBranch,
            baseCommit: null,
            name: trigger.name,
            agentName: trigger.agent,
            agentModel: null,
            initialPrompt: prompt.success,
            metadata: {},
            triggerSlug: trigger.slug,
            createdBy: request.userId,
            // A fire by hand acts as its user; a machine's has the least power (api.md 1 "Origin").
            origin: request.kind === "manual" ? "session" : "trigger",
            bootDeadlineAt: now + options.bootTimeoutMs,
          };
          const admission = yield* admitter.admit(project.accountId, {
            session,
            fire,
            atCap: request.atCap,
            now,
          });
          // A webhook's sender is told and comes again; a due instant has nobody to tell, and each has its row.
          if (admission.outcome === "queue_full" && request.kind === "cron") {
            yield* admissions.recordFailed(fire, "queue_full");
          }
          return admission;
        }),
      });
    }),
  );

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
  replayOf: null,
  queueTtlMs,
  queueMax,
});
