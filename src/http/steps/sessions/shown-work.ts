/** Pushed work as the caller may see it. People without the power over secrets see no value of one (threats.md S13). */
import * as Effect from "effect/Effect";
import { maskedWork } from "../../../domain/secret/leaked-secrets.ts";
import { projectRedactor } from "../../../services/projects/project-secrets.ts";
import { ModelPolicy } from "../../../services/projects/models.ts";
import { lackAt, lackOf } from "../../callers/access.ts";
import { Caller } from "../../api/access.ts";

/** Masks an answer about the project's pushed work, unless the caller works in the project, as its agents with the secrets do. */
export const shownWork = Effect.fnUntraced(function* <A>(projectId: string, work: A) {
  const caller = yield* Caller;
  const reached = caller.reached ?? null;
  if (
    lackOf(caller, "open_change_request") === null &&
    reached !== null &&
    lackAt("open_change_request", reached) === null
  )
    return work;
  const redactor = yield* projectRedactor(projectId);
  const { gatewayKey } = yield* ModelPolicy;
  if (gatewayKey !== null) redactor.add(gatewayKey);
  return maskedWork(work, redactor);
});
