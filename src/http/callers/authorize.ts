/**
 * Authentication and the common error shape for every endpoint of the API. A request carries a bearer token or the
 * dashboard's cookie. Unsafe requests with the cookie also need the CSRF header (api.md 3 "preview").
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http";
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api";
import { parseRecord } from "../../ground/record.ts";
import { parseUuid, tokenHash, tokenKind } from "../../domain/ids.ts";
import { Directory } from "../../services/directory.ts";
import { Identity, type RequestPath, type Principal } from "../../store/ports/people/identity.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { callerKind, lackAt, findLack, neededRole, reaches, type Lack } from "./access.ts";
import { actingAs } from "./acting.ts";
import { requireAllowed } from "./agent-rules.ts";
import { withApiErrors } from "../steps/answers.ts";
import { privilegeRule, type Privilege } from "../../domain/person/privileges.ts";
import { RequiredPrivilege, Authorized, Caller, type RequestCaller } from "../api/access.ts";
import {
  type BadRequest,
  badRequest,
  Forbidden,
  NotFound,
  notFound,
  Unauthorized,
  type UnsupportedMedia,
  unsupportedMedia,
} from "../api/errors.ts";
import { JSON_LIMIT_BYTES, awaitBody } from "../reading/body.ts";
import { sessionHash } from "../pages/dashboard-sessions.ts";
import { invalidRequest, unknownFields } from "../answers/issues.ts";
import { Addresses } from "../limits.ts";
import { toUse, Openings } from "./openings.ts";
import { currentAttempt, recordLack, tokenRefused } from "../answers/refused-requests.ts";

export const unauthorized = (): Unauthorized =>
  new Unauthorized({
    error: "Invalid or expired token. Send a valid one in the header `Authorization: Bearer <token>`.",
    code: "unauthorized",
  });

const boundTo = (projectId: string): string => `This token works only in the project ${projectId}.`;

const lackWords = (caller: Principal, lack: Lack): string => {
  switch (lack.by) {
    case "token":
      return `A ${callerKind(caller)} token does not have permission to do this.`;
    case "binding":
      return `${boundTo(lack.projectId)} This needs a token of the whole account.`;
    case "account":
      return "Only an owner of the account can do this.";
    case "role":
      return `Your role in this project is ${lack.role}. This needs the role ${lack.needed}. An owner of the project can change your role.`;
    case "session":
      return (
        "An agent reaches the agent runtime of its own session only, and the ports of its own session and of those " +
        "that it started."
      );
  }
};

/** 403, with what is missing. */
export const forbidden = (caller: Principal, lack: Lack): Forbidden =>
  new Forbidden({ error: lackWords(caller, lack), code: "forbidden" });

/** 404. A bound token hears where it works, the same for every other project, whether or not that one exists (threats.md T02). */
const noProject = ({ projectId, reached }: RequestCaller): NotFound => {
  const refusal = notFound("project");
  return projectId === null || reached?.path.projectId === projectId
    ? refusal
    : new NotFound({ ...refusal, error: `${refusal.error} ${boundTo(projectId)}` });
};

const BEARER = /^Bearer ([A-Za-z0-9_-]+)$/i;

/**
 * The caller of a request, by its token or the dashboard's cookie, and what the request's path names. Fails with 401.
 */
export const authenticator = Effect.gen(function* () {
  const identity = yield* Identity;
  const { publicUrl } = yield* Addresses;
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof tokenRefused>>>();
  const findCaller = Effect.fnUntraced(function* (hash: string, path: RequestPath | null) {
    const now = yield* Clock.currentTimeMillis;
    if (path === null) return yield* identity.authenticate(hash, now);
    const arrival = yield* identity.arrive(hash, now, path);
    return arrival === null ? null : { ...arrival.caller, reached: arrival.reached };
  });
  return Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    path: RequestPath | null = null,
  ): Effect.fn.Return<RequestCaller, StoreError | Unauthorized | Forbidden> {
    const header = request.headers["authorization"];
    const hash =
      header === undefined ? yield* sessionHash(request, publicUrl) : hashOfBearer(BEARER.exec(header)?.[1]);
    if (hash === null) return yield* unauthorized();
    const caller = yield* findCaller(hash, path);
    if (caller !== null) return caller;
    const attempt = yield* Effect.provideService(
      currentAttempt,
      HttpServerRequest.HttpServerRequest,
      request,
    );
    return yield* Effect.flatMap(
      Effect.provideContext(tokenRefused(hash, attempt, unauthorized()), context),
      Effect.fail,
    );
  });
});

const isServiceKey = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  tokenKind(BEARER.exec(headers["authorization"] ?? "")?.[1] ?? "") === "sbx";

const sandboxEnded = (): Forbidden =>
  new Forbidden({
    error:
      "Only the sandbox of a live session can get a clone credential. The session of this service key has ended.",
    code: "forbidden",
  });

const hashOfBearer = (token: string | undefined): string | null =>
  token === undefined || tokenKind(token) === null ? null : tokenHash(token);

const endpointPrivilege = (endpoint: HttpApiEndpoint.Top): Privilege | null =>
  Option.getOrNull(Context.getOption(endpoint.annotations, RequiredPrivilege));

/** The middleware of every authenticated endpoint. */
export const authorizedLayer = Layer.effect(
  Authorized,
  Effect.gen(function* () {
    const authenticate = yield* authenticator;
    const { ending } = yield* Openings;
    const directory = yield* Directory;
    const context = yield* Effect.context<Effect.Services<ReturnType<ReturnType<typeof recordLack>>>>();
    /** If the token or its role ends while the body still arrives, the request is refused. */
    const receiveBody = (
      request: HttpServerRequest.HttpServerRequest,
      caller: RequestCaller,
      privilege: Privilege,
    ) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { path, mergeRole = "owner" } = caller.reached ?? {};
          const needs = neededRole(privilege, mergeRole);
          const projectId = needs === null ? null : (path?.projectId ?? null);
          const end = yield* ending(toUse(caller, { projectId, needs: needs ?? "viewer", session: null }));
          yield* Effect.raceFirst(
            awaitBody(request, JSON_LIMIT_BYTES),
            Effect.andThen(Deferred.await(end), unauthorized()),
          );
        }),
      );
    const identify = (
      request: HttpServerRequest.HttpServerRequest,
      privilege: Privilege | null,
      path: RequestPath | null,
    ) =>
      withApiErrors(authenticate(request, path)).pipe(
        // An ended sandbox's key gets the same answer as any other token here (api.md 6: anything else 403).
        Effect.mapError((error) =>
          error instanceof Unauthorized && privilege === "get_clone_credential" && isServiceKey(request)
            ? sandboxEnded()
            : error,
        ),
      );
    return Authorized.of((handle, { endpoint }) => {
      const privilege = endpointPrivilege(endpoint);
      const takesBody = endpoint.payload.size > 0;
      const answer = inOneShape(handle);
      return Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest;
        const hasBody = takesBody || sendsBody(request);
        const { params } = yield* HttpRouter.RouteContext;
        // The decoder refuses text that is not an id, for every token alike.
        const projectId = parseUuid(params["pid"] ?? "");
        // A session that is read now would be old when a body has arrived.
        const path = projectId === null ? null : toPath(projectId, hasBody ? undefined : params["sid"]);
        const caller = yield* identify(request, privilege, path);
        const call = Effect.gen(function* () {
          // An endpoint without a privilege is closed to all callers.
          const lack = privilege === null ? { by: "token" as const } : findLack(caller, privilege);
          if (privilege === null || lack !== null) return yield* forbidden(caller, lack ?? { by: "token" });
          if (projectId !== null)
            yield* Effect.provideService(requireHere(caller, privilege), Directory, directory);
          // Read before decoding: the decoder takes any bytes that have arrived, without a size or time limit.
          if (hasBody) yield* receiveBody(request, caller, privilege);
          if (hasBody && !takesBody) yield* requireEmpty(request);
          return yield* Effect.provideService(answer, Caller, caller).pipe(actingAs(caller, request));
        });
        const attempt = yield* currentAttempt;
        return yield* Effect.tapError(call, (error) =>
          Effect.provideContext(recordLack(caller, attempt, projectId)(error), context),
        );
      });
    });
  }),
);

/**
 * Fails with 404 if the project of the path does not exist for the caller, and with 403 if her role lacks the privilege. It passes what
 * does not depend on a role.
 */
export const requireRole = Effect.fnUntraced(function* (caller: RequestCaller, privilege: Privilege) {
  const { reached } = caller;
  if (neededRole(privilege, "owner") === null) return;
  if (reached === undefined || reached.role === null || !reaches(caller, reached.path.projectId))
    return yield* noProject(caller);
  const lack = lackAt(privilege, reached);
  if (lack !== null) return yield* forbidden(caller, lack);
});

/** For a privilege that only a part of a route needs: fails with 403 for a token or a role without it. */
export const requirePrivilege = Effect.fnUntraced(function* (caller: RequestCaller, privilege: Privilege) {
  const lack = findLack(caller, privilege);
  if (lack !== null) return yield* forbidden(caller, lack);
  yield* requireRole(caller, privilege);
});

/** Like `requireRole`. Also fails with 403 if the project denies this to agents and the caller is one (agent-rules.ts R1). */
const requireHere = Effect.fnUntraced(function* (caller: RequestCaller, privilege: Privilege) {
  yield* requireRole(caller, privilege);
  const { tool } = privilegeRule(privilege);
  const { reached } = caller;
  if (tool !== undefined && reached !== undefined)
    yield* requireAllowed(caller, reached.path.projectId, tool);
});

const toPath = (projectId: string, sid: string | undefined): RequestPath => ({
  projectId,
  sessionId: parseUuid(sid ?? ""),
});

type Handle<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>;

/** Puts the router's own errors about a request into the common shape. Everything else passes. */
const inOneShape = <E, R>(handle: Handle<E, R>): Handle<E | BadRequest | UnsupportedMedia, R> =>
  handle.pipe(
    Effect.catch((error): Effect.Effect<never, E | BadRequest> =>
      HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders"
        ? Effect.fail(invalidRequest(error))
        : Effect.fail(error),
    ),
    // The router answers a wrong content type itself, in plain text.
    Effect.flatMap((response) =>
      response.status === 415 ? Effect.fail(unsupportedMedia()) : Effect.succeed(response),
    ),
  );

/** Whether a body comes with a request that may change something. */
const sendsBody = ({ method, headers }: HttpServerRequest.HttpServerRequest): boolean =>
  method !== "GET" &&
  method !== "HEAD" &&
  (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0);

/** An endpoint without fields accepts an empty body and an empty object. The body has been read. */
const requireEmpty = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const text = yield* Effect.orDie(request.text);
  if (text === "") return;
  const [type = ""] = (request.headers["content-type"] ?? "application/json").split(";");
  if (type.trim().toLowerCase() !== "application/json") return yield* unsupportedMedia();
  const body = parseRecord(text);
  if (body === null) return yield* badRequest("", "must be empty, or an empty JSON object");
  const names = Object.keys(body);
  if (names.length > 0) return yield* unknownFields(names);
});
