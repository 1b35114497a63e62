/** Handlers of `…/own-credentials` in api/sessions/sessions.ts: whether the own credentials of a session's person work there. */
import * as Effect from "effect/Effect";
import { STEERING_ACTS } from "../../domain/connector/own-credential.ts";
import { OwnSubscriptions } from "../../services/projects/own-subscriptions.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { withAudit } from "../../services/audit.ts";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import { Caller } from "../api/access.ts";
import { Forbidden } from "../api/errors.ts";
import { projectFor, sessionFor } from "./answers.ts";
import { instant } from "./wire.ts";

type Params = { readonly pid: string; readonly sid: string };

export const shownOwnCredentials = Effect.fnUntraced(function* (params: Params) {
  const caller = yield* Caller;
  const session = yield* sessionFor(caller, params);
  const { executor } = yield* (yield* Manifests).current(yield* projectFor(caller, params.pid));
  const suspension = yield* (yield* Suspensions).get(session.id);
  const isInside = yield* (yield* OwnSubscriptions).isInside(session.id);
  return {
    subscription: isInside,
    connectors: executor.connectors.flatMap(({ slug, credential }) => (credential === "user" ? [slug] : [])),
    suspended: suspension && {
      session_id: suspension.sessionId,
      by: suspension.by,
      act: suspension.act,
      words: STEERING_ACTS[suspension.act],
      at: instant(suspension.at),
    },
  };
});

/** O3: the session's person alone. */
export const giveOwnCredentials = Effect.fnUntraced(function* (params: Params) {
  const { user } = yield* Caller;
  const session = yield* sessionFor(yield* Caller, params);
  if (session.origin !== "session" || session.createdBy !== user.id)
    return yield* new Forbidden({
      error: "Only the person who started the session can give back her own credentials.",
      code: "forbidden",
    });
  const row = { action: "session.credentials_given", target: session.id } as const;
  yield* (yield* Suspensions).end(session.id).pipe(withAudit((isEnded) => (isEnded ? row : null)));
});
