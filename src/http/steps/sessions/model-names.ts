/** Names of models in requests. Their form depends on the agent's runtime. */
import * as Effect from "effect/Effect";
import type { Agent } from "../../../domain/agents/agents.ts";
import { isAgentModel, isModelName } from "../../../domain/sandbox/agent.ts";
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
