/** Code that handlers share: missing rows become 404s, outages become 503s. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpServerResponse } from "effect/http";
import { AdmissionBusy } from "../../services/triggers/admission.ts";
import { ActorUnavailable } from "../../services/actors.ts";
import { ActorNotFound, MailboxFull } from "../../ground/mailbox.ts";
import { StoreError } from "../../store/ports/journal.ts";
import { BadCursor } from "../../store/ports/errors.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { Projects, type Project } from "../../store/ports/projects/projects.ts";
import { Sessions, type Session, type ShownSession } from "../../store/ports/sessions/sessions.ts";
import type { Page } from "../../store/ports/page.ts";
import type { PathRows } from "../../store/ports/people/identity.ts";
import type { RequestCaller } from "../api/access.ts";
import {
  badRequest,
  internalError,
  isApiError,
  notFound,
  Unavailable,
  type ApiError,
  type BadRequest,
  type NotFound,
} from "../api/errors.ts";
import { listReader, reaches } from "../callers/access.ts";
import { databaseUnavailable } from "../answers/refusals.ts";
import { pageRequest } from "./wire.ts";

/** Errors that can occur below any handler. Only a forged cursor or a stale id is the caller's fault. */
type Beneath = StoreError | BadCursor | ActorNotFound | ActorUnavailable | MailboxFull | AdmissionBusy;

const isBeneath = (error: unknown): error is Beneath =>
  error instanceof StoreError ||
  error instanceof BadCursor ||
  error instanceof ActorNotFound ||
  error instanceof ActorUnavailable ||
  error instanceof MailboxFull ||
  error instanceof AdmissionBusy;

/** Maps an outage below a handler to 503, and an invalid cursor to 400 (threats.md T07). */
export const withApiErrors = <A, E, R>(
  handler: Effect.Effect<A, E, R>,
): Effect.Effect<A, Exclude<E, Beneath> | BadRequest | NotFound | Unavailable, R> =>
  Effect.catch(
    handler,
    (error): Effect.Effect<never, Exclude<E, Beneath> | BadRequest | NotFound | Unavailable> =>
      isBeneath(error) ? answerFor(error) : Effect.fail(error as Exclude<E, Beneath>),
  );

const answerFor = (error: Beneath): Effect.Effect<never, BadRequest | NotFound | Unavailable> => {
  if (error instanceof BadCursor)
    return Effect.fail(badRequest("cursor", "must be the cursor of an earlier page"));
  if (error instanceof ActorNotFound) return Effect.fail(notFound("session"));
  const answer =
    error instanceof StoreError
      ? databaseUnavailable(error)
      : new Unavailable({
          error: "The service is busy with this account or session. Try again in a moment.",
          code: "busy",
        });
  return Effect.andThen(Effect.logWarning("answered 503", { error }), Effect.fail(answer));
};

/** Runs a raw route's decision to its answer: `refuse` sends the caller its error, a defect as 500. */
export const runDecision = <E, R>(
  decision: Effect.Effect<void, E, R>,
  refuse: (error: ApiError) => void,
): Effect.Effect<void, never, R> =>
  withApiErrors(decision).pipe(
    Effect.catch((error: unknown) =>
      isApiError(error) ? Effect.sync(() => refuse(error)) : Effect.die(error),
    ),
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logError("a relayed request failed", cause),
        Effect.sync(() => refuse(internalError())),
      ),
    ),
  );

/**
 * The answer of a read, which the compiler holds against its schema: `A` is the schema's encoded type. Returned as it
 * is, it would be checked field by field once more, which took a quarter of the time of a list.
 */
export const typedResponse = <A>(body: A): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(body), { contentType: "application/json" });

/**
 * The project of the path, if the caller's account and token reach it. Her role there was checked with the path
 * (authorize.ts).
 */
export const projectFor = Effect.fnUntraced(function* (
  caller: RequestCaller,
  id: string,
): Effect.fn.Return<Project, StoreError | NotFound, Projects> {
  if (knownAt(caller, id)?.role === null) return yield* notFound("project");
  const project = yield* (yield* Projects).get(id);
  if (project === null || project.accountId !== caller.accountId || !reaches(caller, id)) {
    return yield* notFound("project");
  }
  return project;
});

/** A page of the projects that the caller sees. */
export const projectPage = (
  caller: RequestCaller,
  query: { readonly limit?: number; readonly cursor?: string },
): Effect.Effect<Page<Project>, StoreError | BadCursor, Projects> =>
  Effect.flatMap(Projects, ({ list }) =>
    list(
      { accountId: caller.accountId, userId: listReader(caller) },
      { ...pageRequest(query), onlyId: caller.projectId },
    ),
  );

/** The part of the request that was read with the caller, if it is about this project. */
const knownAt = ({ reached }: RequestCaller, projectId: string): PathRows | undefined =>
  reached?.path.projectId === projectId ? reached : undefined;

/** Fails if the caller's account or token does not reach the project. Reads nothing that was read with the caller. */
export const requireProject = (
  caller: RequestCaller,
  id: string,
): Effect.Effect<void, StoreError | NotFound, Projects> => {
  const target = knownAt(caller, id);
  if (target === undefined) return Effect.asVoid(projectFor(caller, id));
  return target.role !== null && reaches(caller, id) ? Effect.void : Effect.fail(notFound("project"));
};

/** The session of the path. A deleted session is not found. */
export const sessionFor = Effect.fnUntraced(function* (
  caller: RequestCaller,
  params: { readonly pid: string; readonly sid: string },
): Effect.fn.Return<Session | ShownSession, StoreError | NotFound, Projects | Sessions> {
  yield* requireProject(caller, params.pid);
  const target = knownAt(caller, params.pid);
  if (target?.path.sessionId === params.sid) return target.session ?? (yield* notFound("session"));
  const session = yield* (yield* Sessions).get(params.sid);
  if (session === null || session.projectId !== params.pid || session.deletedAt !== null) {
    return yield* notFound("session");
  }
  return session;
});

/** The session's conversation. It is opened if no sandbox has reported yet: its first item is the initial prompt. */
export const ensureConversation = Effect.fnUntraced(function* (sessionId: string) {
  const conversations = yield* Conversations;
  const now = yield* Clock.currentTimeMillis;
  const conversation = (yield* conversations.get(sessionId)) ?? (yield* conversations.open(sessionId, now));
  return conversation ?? (yield* notFound("session"));
});
