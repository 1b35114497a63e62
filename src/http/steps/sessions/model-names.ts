/** Names of models and efforts in requests. Their form depends on the agent's runtime. */
import * as Effect from "effect/Effect";
import type { Agent } from "../../../domain/agents/agents.ts";
import { EFFORT_RULE, isAgentModel, isEffort, isModelName } from "../../../domain/sandbox/agent.ts";
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
