/**
 * Requests that the service refuses because of who sends them: what the sender reads, and what the audit record keeps.
 *
 *  - A token of a person that has ended is recorded, whatever it asks for: someone uses what should be forgotten. Tokens of sandboxes end
 *    with every session, and browsers by themselves, so theirs are not.
 *  - A request that may not change something is recorded. A read that is refused changes nothing and shows nothing.
 *  - A text that is not a token names no one, and is not recorded.
 *  - Records are bounded (services/audit.ts), and a record that fails does not delay or change the answer.
 */
import type { ServerResponse } from "node:http";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpServerRequest } from "effect/http";
import { Acting, recordRefusedRequest, type Act } from "../../services/audit.ts";
import { SignInProviders } from "../../sign-in/port.ts";
import { Identity, type EndedToken, type Principal } from "../../store/ports/people/identity.ts";
import { auditActor, rawAct, unknownAct } from "../callers/acting.ts";
import { Forbidden, Unauthorized } from "../api/errors.ts";
import { Addresses } from "../limits.ts";
import { RouteNames } from "../route-name.ts";

/** A request as the record keeps it. */
export interface Attempt {
  readonly act: Act;
  /** Method and pattern: the ids of a path are in no row. */
  readonly route: string;
  readonly isChange: boolean;
}

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** The request of this fiber. */
export const currentAttempt = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const { method, url } = request;
  const attempt: Attempt = {
    act: yield* unknownAct(request),
    route: (yield* RouteNames)(method, url),
    isChange: !READS.has(method),
  };
  return attempt;
});

/** A request below the router. */
export const rawAttempt = Effect.fnUntraced(function* (response: Pick<ServerResponse, "req" | "getHeader">) {
  const { method = "GET", url = "" } = response.req;
  const attempt: Attempt = {
    act: yield* rawAct(response),
    route: (yield* RouteNames)(method, url),
    isChange: !READS.has(method),
  };
  return attempt;
});

const recordAttempt = (
  { act, route }: Attempt,
  by: { readonly id: string; readonly act: Partial<Act> },
  why: object,
) =>
  recordRefusedRequest({ action: "request", target: route, changes: { ...why } }, `${by.id} ${route}`).pipe(
    Effect.provideService(Acting, { ...act, ...by.act }),
    Effect.catch((error) => Effect.logWarning("a refused request is not on record", { error })),
  );

const isOnRecord = ({ kind, origin, why }: EndedToken): boolean => {
  if (origin !== "user" || kind === "sandbox") return false;
  return kind === "access" || why === "deactivated" || why === "revoked";
};

/** 401, with where to sign in. */
const signInRequired = Effect.gen(function* () {
  const { publicUrl } = yield* Addresses;
  const labels = (yield* SignInProviders).map(({ label }) => label).join(" or ");
  return new Unauthorized({
    error: `Your last sign-in is too long ago. Sign in at ${publicUrl}/ with ${labels}. Your access tokens then work again.`,
    code: "sign_in_required",
    details: { sign_in_url: `${publicUrl}/` },
  });
});

/**
 * Why a token was not accepted, on record where that says something.
 *
 * @param hash of what the request has as its token
 * @param attempt null if the request has its own record
 * @param otherwise the error for a token that is unknown or has ended
 */
export const tokenRefused = Effect.fnUntraced(function* (
  hash: string,
  attempt: Attempt | null,
  otherwise: Unauthorized,
) {
  const token = yield* (yield* Identity).endedToken(hash, yield* Clock.currentTimeMillis);
  if (token === null) return otherwise;
  const { tokenId, accountId, why } = token;
  if (attempt !== null && isOnRecord(token))
    yield* recordAttempt(attempt, { id: tokenId, act: { actor: auditActor(token), accountId } }, { why });
  return why === "sign_in_required" ? yield* signInRequired : otherwise;
});

/** Puts a refusal for lack of a power on record, if the request would have changed something. */
export const recordLack =
  (caller: Principal, attempt: Attempt, projectId: string | null) => (error: unknown) =>
    error instanceof Forbidden && attempt.isChange
      ? recordAttempt(
          attempt,
          { id: caller.tokenId, act: { actor: auditActor(caller), accountId: caller.accountId, projectId } },
          { why: error.code, answer: error.error },
        )
      : Effect.void;
