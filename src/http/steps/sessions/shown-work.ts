/**
 * Work as the caller may see it. People without the power over secrets see no value of one (threats.md S13), and only its person sees the
 * content of an own subscription.
 */
import * as Effect from "effect/Effect";
import { Redactor } from "../../../domain/secret/redactor.ts";
import { OwnSubscriptions } from "../../../services/projects/own-subscriptions.ts";
import { Sessions } from "../../../store/ports/sessions/sessions.ts";
import { maskedWork } from "../../../domain/secret/leaked-secrets.ts";
import { projectRedactor } from "../../../services/projects/project-secrets.ts";
import { ModelPolicy } from "../../../services/projects/models.ts";
import { lackAt, findLack } from "../../callers/access.ts";
import { Caller } from "../../api/access.ts";

/** The own subscriptions of a session's person, for everybody but her: her agents are others. */
const othersSecrets = Effect.fnUntraced(function* (sessionId: string | null) {
  const { user, origin } = yield* Caller;
  const session = sessionId === null ? null : yield* (yield* Sessions).get(sessionId);
  if (session === null || (session.createdBy === user.id && origin === "user")) return [];
  return yield* (yield* OwnSubscriptions).secrets(session.accountId, session.createdBy);
});

/**
 * Masks an answer about a session's work. The project's secrets are shown to a caller who works in the project, as its agents with the
 * secrets do.
 *
 * @param sessionId null: it is of no session
 */
export const shownWork = Effect.fnUntraced(function* <A>(
  { projectId, sessionId }: { readonly projectId: string; readonly sessionId: string | null },
  work: A,
) {
  const caller = yield* Caller;
  const others = yield* othersSecrets(sessionId);
  const target = caller.reached ?? null;
  if (
    findLack(caller, "open_change_request") === null &&
    target !== null &&
    lackAt("open_change_request", target) === null
  )
    return others.length === 0 ? work : maskedWork(work, new Redactor(others));
  const redactor = yield* projectRedactor(projectId);
  const { gatewayKey } = yield* ModelPolicy;
  if (gatewayKey !== null) redactor.add(gatewayKey);
  for (const secret of others) redactor.add(secret);
  return maskedWork(work, redactor);
});
