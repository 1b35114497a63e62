/** What limits of spend say about the session of a trigger's fire: when it fires (firing.ts), and when it leaves the queue (start-limits.ts). */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { agentNamed } from "../../domain/agents/agents.ts";
import type { LimitedSession } from "../../domain/sandbox/spend.ts";
import { uncountedReason } from "../../domain/sandbox/uncounted.ts";
import type { FirePrompt } from "../../store/ports/triggers/fires.ts";
import { Directory } from "../directory.ts";
import { AccountModels } from "../projects/account-models.ts";
import { AccountSpend } from "../projects/account-spend.ts";
import { ModelPolicy } from "../projects/models.ts";
import { OwnSubscriptions } from "../projects/own-subscriptions.ts";
import { Runtimes } from "../projects/runtimes.ts";

export interface LimitedFire {
  readonly session: LimitedSession;
  /** The agent's name. */
  readonly agent: string;
  /** Whose own providers and subscriptions the session may use. Null if it acts for no person. */
  readonly personId: string | null;
}

/** Why a limit of spend lets a fire start nothing. */
type LimitRefusal = Extract<FirePrompt, { readonly is: "skipped" | "limit_needs_provider" }>;

/** @returns a function that says why a fire starts nothing. Null if it may start. */
export const fireLimits = Effect.gen(function* () {
  const directory = yield* Directory;
  const { required: isRequired } = yield* ModelPolicy;
  const runtimes = yield* Runtimes;
  const accountModels = yield* AccountModels;
  const subscriptions = yield* OwnSubscriptions;
  const spend = yield* AccountSpend;

  /** By what is in memory. Unknown counts as counted. */
  const isUncounted = Effect.fnUntraced(function* ({ session, agent: name, personId }: LimitedFire) {
    const { accountId, projectId } = session;
    const knownProject = directory.known(projectId);
    const agent = knownProject && Result.getOrNull(agentNamed(knownProject.manifest.agents, name, runtimes));
    if (knownProject === null || agent === null) return false;
    const reason = uncountedReason({
      agent,
      agentModel: null,
      secretNames: knownProject.deliveredNames,
      providers: yield* accountModels({ accountId, projectId, personId }),
      kept: yield* subscriptions.kept(accountId, personId),
      bringsModel: knownProject.bringsModel === true,
    });
    return reason !== null;
  });

  return Effect.fnUntraced(function* (fire: LimitedFire) {
    const { applies, reached } = yield* spend.standing(fire.session);
    const refusal: LimitRefusal | null =
      reached !== null
        ? { is: "skipped", reason: "spend_limit" }
        : applies && isRequired && (yield* isUncounted(fire))
          ? { is: "limit_needs_provider" }
          : null;
    return refusal;
  });
});
