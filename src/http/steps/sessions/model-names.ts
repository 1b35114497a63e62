/** Names of models, efforts and modes in requests. Their form depends on the agent's runtime. */
import * as Effect from "effect/Effect";
import type { Agent } from "../../../domain/agents/agents.ts";
import {
  AGENT_NAME_RULE,
  EFFORT_RULE,
  isAgentModel,
  isAgentName,
  isEffort,
  isModelName,
} from "../../../domain/sandbox/agent.ts";
import { badRequest } from "../../api/errors.ts";

/** Refuses a name that no model of the agent's runtime can have. @param field of the request */
export const checkModelName = Effect.fnUntraced(function* (
  { runtime }: Pick<Agent, "runtime">,
  field: string,
  model: string,
) {
  if (runtime.models === "own") {
    if (!isModelName(model))
      return yield* badRequest(field, "must have 1 to 200 characters without white space");
  } else if (!isAgentModel(model)) return yield* badRequest(field, "must have the form provider/model");
});

/** Refuses an effort that the agent's runtime cannot take. Which ones it takes is known once it runs. */
export const checkEffort = Effect.fnUntraced(function* ({ runtime }: Pick<Agent, "runtime">, effort: string) {
  if (!isEffort(effort)) return yield* badRequest("effort", EFFORT_RULE);
  if (runtime.efforts) return;
  const reason = runtime.lacks.effort_changes;
  return yield* badRequest(
    "effort",
    `must be left out, because the runtime ${runtime.name} takes none${reason === undefined ? "" : `. ${reason}`}`,
  );
});

/** Refuses a mode that the agent's runtime does not have. Which ones a program of the project has is known once it runs. */
export const checkMode = Effect.fnUntraced(function* ({ runtime }: Pick<Agent, "runtime">, mode: string) {
  const { name, modes, plan, lacks } = runtime;
  if (modes === "any") return isAgentName(mode) ? undefined : yield* badRequest("mode", AGENT_NAME_RULE);
  if (modes.includes(mode)) return;
  const reason = plan === null && lacks.plans !== undefined ? `. ${lacks.plans}` : "";
  return yield* badRequest(
    "mode",
    modes.length === 0
      ? `must be left out, because the runtime ${name} has none`
      : `must be one that the runtime ${name} has: ${modes.join(", ")}${reason}`,
  );
});
