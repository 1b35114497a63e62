/** Common parts of raw routes of a project or a session: the caller, the ids of the path, the form of errors. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http";
import { parseUuid } from "../../domain/ids.ts";
import type { Privilege } from "../../domain/person/privileges.ts";
import type { ProjectRole } from "../../domain/person/role.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import { findLack } from "../callers/access.ts";
import type { RequestCaller } from "../api/access.ts";
import { badRequest, isApiError, type ApiError } from "../api/errors.ts";
import { authenticator, forbidden, requireRole } from "../callers/authorize.ts";
import { withApiErrors } from "../steps/answers.ts";
import { toUse, Openings } from "../callers/openings.ts";
import { currentAttempt, recordLack } from "../answers/refused-requests.ts";
import { apiErrorResponse } from "../answers/respond.ts";

export interface RawParams {
  readonly pid: string;
  /** Null if the path names no session. */
  readonly sid: string | null;
}

/** The same for a route whose path names no project. A bound token's project counts as named. */
export const calledWithoutProject = <A, E, R>(
  privilege: Privilege,
  handler: (caller: RequestCaller) => Effect.Effect<A, E, R>,
) =>
  Effect.gen(function* () {
    const authenticate = yield* authenticator;
    const request = yield* HttpServerRequest.HttpServerRequest;
    const { projectId } = yield* authenticate(request);
    const path = projectId === null ? null : { projectId, sessionId: null };
    const caller = yield* authenticate(request, path);
    const attempt = yield* currentAttempt;
    const call = Effect.gen(function* () {
      const lack = findLack(caller, privilege);
      if (lack !== null) return yield* forbidden(caller, lack);
      if (path !== null) yield* requireRole(caller, privilege);
      return yield* handler(caller);
    });
    return yield* Effect.tapError(call, recordLack(caller, attempt, projectId));
  });

/** Authenticates, checks the caller's privilege, and passes on the ids of the path. */
export const calledWith = <A, E, R>(
  privilege: Privilege,
  handler: (caller: RequestCaller, params: RawParams) => Effect.Effect<A, E, R>,
) =>
  Effect.gen(function* () {
    const authenticate = yield* authenticator;
    const { params } = yield* HttpRouter.RouteContext;
    const pid = parseUuid(params["pid"] ?? "");
    const sid = params["sid"] === undefined ? null : parseUuid(params["sid"]);
    const path = pid === null ? null : { projectId: pid, sessionId: null };
    const caller = yield* authenticate(yield* HttpServerRequest.HttpServerRequest, path);
    const attempt = yield* currentAttempt;
    const call = Effect.gen(function* () {
      const lack = findLack(caller, privilege);
      if (lack !== null) return yield* forbidden(caller, lack);
      if (pid === null) return yield* badRequest("pid", "must be a lower-case UUID");
      if (params["sid"] !== undefined && sid === null)
        return yield* badRequest("sid", "must be a lower-case UUID");
      yield* requireRole(caller, privilege);
      return yield* handler(caller, { pid, sid });
    });
    return yield* Effect.tapError(call, recordLack(caller, attempt, pid));
  });

/**
 * Completes when the caller's token or role ends: nothing that lasts may outlive them (threats.md T03).
 *
 * @param projectId null: what lasts is of no one project. Then `needs` is the role in the account.
 * @param needs the lowest role that may go on
 */
export const endOfAccess = (caller: Principal, projectId: string | null, needs: ProjectRole = "viewer") =>
  Effect.flatMap(Openings, ({ ending }) =>
    Effect.map(ending(toUse(caller, { projectId, needs, session: null })), Deferred.await),
  );

/** The handler's answer, or its error in the common shape. */
export const withErrors = <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.catch(withApiErrors(handler), (error: unknown) =>
    isApiError(error) ? Effect.succeed(apiErrorResponse(error satisfies ApiError)) : Effect.die(error),
  );
