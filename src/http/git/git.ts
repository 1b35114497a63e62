/**
 * Git over HTTP (api.md 6): authenticates, decides what the caller may write, and lets git/server/smart-http.ts stream.
 * The password is a minted clone credential or a user's access token. The user name does not matter.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest";
import * as Stream from "effect/Stream";
import { newUuid } from "../../services/entropy.ts";
import { nowMs, Traces } from "../../telemetry/port.ts";
import { ROOT } from "../../domain/service/span.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { tokenHash, tokenKind } from "../../domain/ids.ts";
import { GitError } from "../../git/port.ts";
import type { PushHeard } from "../../git/server/pushed.ts";
import type { Protection, WritePolicy } from "../../git/server/ref-policy.ts";
import {
  parseGitPath,
  type GitResponse,
  type GitRoute,
  type SmartHttp,
} from "../../git/server/smart-http.ts";
import type { Standing } from "../../git/server/standing.ts";
import { Keyring } from "../../services/keyring.ts";
import { Sandboxes } from "../../store/ports/sessions/sandboxes.ts";
import type { Privilege } from "../../domain/person/privileges.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { CloneCredentials } from "../../store/ports/sessions/clone-credentials.ts";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { lackAt, findLack, neededRole, reaches } from "../callers/access.ts";
import type { RequestCaller } from "../api/access.ts";
import { forbidden } from "../callers/authorize.ts";
import { Forbidden, isApiError, notFound, Unauthorized } from "../api/errors.ts";
import { withApiErrors } from "../steps/answers.ts";
import { noteSteering } from "../callers/steering.ts";
import { toUse, Openings, type Use } from "../callers/openings.ts";
import { currentAttempt, recordLack, tokenRefused, type Attempt } from "../answers/refused-requests.ts";
import { apiErrorResponse, wrongMethod } from "../answers/respond.ts";
import { gitFailed } from "../answers/refusals.ts";

/** The smart protocol over the repositories on this node. */
export class GitEndpoint extends Context.Service<GitEndpoint, SmartHttp>()("platform/http/GitEndpoint") {}

/** What git asks first of a repository. A project's address has its id. */
const NAMED_REPOSITORY = /^\/v1\/git\/(?![0-9a-f]{8}-)[^?]*\/info\/refs\?service=/i;
/** Git shows a plain text after `remote:`. It reads a submodule's relative address from the address of the repository itself. */
const NO_NAMES =
  "Repositories here have addresses with their project's id, such as /v1/git/<id>.git. A submodule with a relative address (../lib.git) needs its whole address in .gitmodules.";

/** Hears the pushes of one caller to one project, and says what git shows the pusher. */
type Listen<R> = (projectId: string, policy: WritePolicy) => Effect.Effect<PushHeard, never, R>;

const serve = Effect.fnUntraced(function* <R>(listen: Listen<R>) {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const route = parseGitPath(request.url);
  if (route === null) {
    if (NAMED_REPOSITORY.test(request.url)) return HttpServerResponse.text(`${NO_NAMES}\n`, { status: 404 });
    return yield* notFound("repository");
  }
  const { policy, use, mayFetchSaves } = yield* accessFor(request, route);
  const method = route.kind === "advertise" ? "GET" : "POST";
  if (request.method !== method) return wrongMethod(method);
  if (route.service === null) {
    return yield* new Forbidden({
      error: "This address is for git clients that use the smart HTTP protocol.",
      code: "dumb_protocol",
    });
  }
  const endpoint = yield* GitEndpoint;
  const standing = yield* readStanding(use);
  const call = {
    repository: { projectId: route.projectId },
    service: route.service,
    policy,
    mayFetchSaves,
    standing,
    pushed: yield* listen(route.projectId, policy),
    protocol: request.headers["git-protocol"],
    disconnect: Effect.sync(() => void NodeHttpServerRequest.toIncomingMessage(request).socket.destroy()),
  };
  const end = Effect.andThen(Deferred.await(standing.ended), credentialsNeeded());
  const answer = yield* Effect.raceFirst(
    route.kind === "advertise"
      ? endpoint.advertise(call)
      : endpoint.serve({
          ...call,
          body: request.stream,
          contentType: request.headers["content-type"],
          contentEncoding: request.headers["content-encoding"],
        }),
    end,
  );
  const response = yield* tracedGit(answer, { route, policy });
  const mayBeFirst = route.service === "git-receive-pack" && policy.writer.kind === "user";
  const isFirstPush = mayBeFirst && (yield* policy.protection).mayReplaceInitialCommit;
  return respond(
    isFirstPush ? { ...response, body: Stream.ensuring(response.body, yield* rereading(route)) } : response,
  );
});

/** A clone, a fetch or a push of a sandbox is a span of its session's trace, until its answer has ended. */
const tracedGit = Effect.fnUntraced(function* (
  answer: GitResponse,
  { route, policy }: { readonly route: GitRoute; readonly policy: WritePolicy },
) {
  const traces = yield* Traces;
  if (!traces.isOn || policy.writer.kind !== "session" || route.kind === "advertise") return answer;
  const { sessionId } = policy.writer;
  const key = `git/${yield* newUuid}`;
  const from = nowMs();
  const recordEnd = Effect.sync(() =>
    traces.span({
      name: "git",
      sessionId,
      key,
      parent: ROOT,
      from,
      to: nowMs(),
      failed: answer.status >= 400,
      attributes: { operation: route.service === "git-receive-pack" ? "push" : "fetch" },
    }),
  );
  return { ...answer, body: Stream.ensuring(answer.body, recordEnd) };
});

/** The one push that may move the default branch brings a manifest, which is read after the push. */
const rereading = Effect.fnUntraced(function* ({ projectId }: GitRoute) {
  const manifests = yield* Manifests;
  const projects = yield* Projects;
  return Effect.ignore(
    Effect.flatMap(projects.get(projectId), (project) =>
      project === null ? Effect.void : Effect.asVoid(manifests.sync(project)),
    ),
  );
});

/** Whether a request's credential is still valid, while the request is under way. */
const readStanding = Effect.fnUntraced(function* (use: Use) {
  const identity = yield* Identity;
  const end = yield* (yield* Openings).ending(use);
  const holds = Clock.currentTimeMillis.pipe(
    Effect.flatMap((now) => identity.ended([use], now)),
    Effect.map((over) => over.length === 0),
    Effect.orElseSucceed(() => false),
  );
  const standing: Standing = { ended: end, holds };
  return standing;
});

const respond = ({ status, headers, body }: GitResponse): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(body, { status, headers, contentType: headers["content-type"] ?? "text/plain" });

const routePrivilege = (service: GitRoute["service"]): Privilege =>
  service === "git-receive-pack" ? "write_ref" : "read_repository";

/** The caller's write policy, and the grant that the request depends on. */
const accessFor = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  route: GitRoute,
) {
  const password = readPassword(request.headers["authorization"]);
  if (password === null) return yield* credentialsNeeded();
  const now = yield* Clock.currentTimeMillis;
  const hash = tokenHash(password);
  // A minted password never has the form of a token.
  if (tokenKind(password) !== null) {
    const path = { projectId: route.projectId, sessionId: null };
    const arrival = yield* (yield* Identity).arrive(hash, now, path);
    const privilege = routePrivilege(route.service);
    const attempt = { ...(yield* currentAttempt), isChange: privilege === "write_ref" };
    if (arrival === null) return yield* passwordRefused(hash, attempt);
    const caller = { ...arrival.caller, reached: arrival.reached };
    const { projectId } = route;
    const use = toUse(caller, {
      projectId,
      needs: neededRole(privilege, "owner") ?? "owner",
      session: null,
    });
    const policy = userPolicy(caller, route).pipe(Effect.tapError(recordLack(caller, attempt, projectId)));
    return { policy: yield* policy, use, mayFetchSaves: mayFetchSaves(caller) };
  }
  const cloneCredential = yield* (yield* CloneCredentials).find(hash, now);
  if (cloneCredential === null) return yield* credentialsNeeded();
  if (cloneCredential.projectId !== route.projectId) return yield* notFound("repository");
  const writes = yield* writePolicy(route.projectId, {
    kind: "session",
    sessionId: cloneCredential.sessionId,
  });
  const policy = { ...writes, ownTokens: yield* liveTokens(cloneCredential.sessionId) };
  const use: Use = {
    credential: { kind: "password", hash },
    projectId: cloneCredential.projectId,
    needs: "member",
    session: null,
    endsWith: [cloneCredential.sessionId],
    expiresAt: cloneCredential.expiresAt,
  };
  return { policy, use, mayFetchSaves: false };
});

/** Whether saved work is this caller's to fetch. A token of a sandbox never may. */
const mayFetchSaves = (caller: RequestCaller): boolean =>
  findLack(caller, "fetch_saved_work") === null &&
  caller.reached?.role != null &&
  lackAt("fetch_saved_work", caller.reached) === null;

/** The live tokens of a session's sandbox (ref-policy.ts W7). */
const liveTokens = Effect.fnUntraced(function* (sessionId: string) {
  const sandbox = yield* (yield* Sandboxes).newest(sessionId);
  const { cliToken, serviceKey } = yield* Keyring;
  return sandbox === null ? [] : [cliToken(sandbox.id), serviceKey(sandbox.id)];
});

const lookup = (message: string) => new GitError({ code: "unavailable", message });

/**
 * The write policy for a project's repository. The protected refs are read each time that git asks (ref-policy.ts, W5).
 *
 * @param isOwner whether the caller may replace the initial commit of a repository without sessions.
 */
export const writePolicy = Effect.fnUntraced(function* (
  projectId: string,
  writer: WritePolicy["writer"],
  isOwner = false,
) {
  const projects = yield* Projects;
  const sessions = yield* Sessions;
  const protection = Effect.gen(function* (): Effect.fn.Return<Protection, StoreError | GitError> {
    const project = yield* projects.get(projectId);
    if (project === null) return yield* lookup("The project was deleted.");
    const mayReplaceInitialCommit = isOwner && !(yield* sessions.anyIn(projectId));
    return { defaultBranches: [project.defaultBranch], mayReplaceInitialCommit };
  });
  const policy: WritePolicy = {
    writer,
    protection: Effect.catchTag(protection, "StoreError", () =>
      Effect.fail(lookup("The service could not check the project. Push again.")),
    ),
  };
  return policy;
});

/**
 * Tokens in sandboxes do not use git. Sandboxes use the minted credential, which has its own write policy (api.md 1).
 */
const userPolicy = Effect.fnUntraced(function* (caller: RequestCaller, { projectId, service }: GitRoute) {
  const isPush = service === "git-receive-pack";
  const privilege = routePrivilege(service);
  if (findLack(caller, privilege) !== null) {
    return yield* new Forbidden({
      error: "This token cannot be used for git. In a sandbox, use the clone credential.",
      code: "forbidden",
    });
  }
  const { reached } = caller;
  if (reached === undefined || reached.role === null || !reaches(caller, projectId))
    return yield* notFound("repository");
  const lack = lackAt(privilege, reached);
  if (lack !== null) return yield* forbidden(caller, lack);
  const isOwner = isPush && caller.projectId === null && reached.role === "owner";
  const policy = yield* writePolicy(projectId, { kind: "user" }, isOwner);
  return { ...policy, steers: yield* makeSteering(caller, projectId) };
});

/** Notes whose sessions a person steers with a push (ref-policy.ts W8). */
const makeSteering = Effect.fnUntraced(function* (caller: RequestCaller, projectId: string) {
  const { get } = yield* Sessions;
  const services = yield* Effect.context<Suspensions>();
  const steer = Effect.fnUntraced(function* (id: string) {
    const session = yield* get(id);
    if (session?.projectId === projectId) yield* noteSteering(caller, session, "write_ref");
  });
  return (ids: readonly string[]) =>
    Effect.forEach(ids, steer, { discard: true }).pipe(
      Effect.provideContext(services),
      Effect.catchTag("StoreError", () =>
        Effect.fail(lookup("The service could not check the session. Push again.")),
      ),
      Effect.catchIf(isApiError, ({ error }) => Effect.fail(lookup(error))),
    );
});

/** A 401 would make git forget the password, which works again after a sign-in. */
const passwordRefused = Effect.fnUntraced(function* (hash: string, attempt: Attempt) {
  const error = yield* tokenRefused(hash, attempt, credentialsNeeded());
  return yield* error.code === "sign_in_required"
    ? Effect.fail(new Forbidden({ error: error.error, code: error.code }))
    : Effect.fail(error);
});

const credentialsNeeded = () =>
  new Unauthorized({
    error: "Invalid or expired token. Use an access token as the git password.",
    code: "unauthorized",
  });

function readPassword(header: string | undefined): string | null {
  const encoded = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon === -1 ? null : text.slice(colon + 1);
}

/** A 401 makes the git client ask for a password. Git shows the bodies of other refusals. */
const answerError = (error: unknown): HttpServerResponse.HttpServerResponse | null => {
  if (!isApiError(error)) return null;
  const response = apiErrorResponse(error);
  return error instanceof Unauthorized
    ? HttpServerResponse.setHeader(response, "www-authenticate", 'Basic realm="platform", charset="UTF-8"')
    : response;
};

export const gitRoute = <R>(listen: Listen<R>) =>
  HttpRouter.add(
    "*",
    "/v1/git/*",
    withApiErrors(serve(listen)).pipe(
      Effect.catchTag("GitError", (error) =>
        Effect.fail(error.code === "unknown_repository" ? notFound("repository") : gitFailed(error)),
      ),
      Effect.catch((error) => {
        const response = answerError(error);
        return response === null ? Effect.die(error) : Effect.succeed(response);
      }),
    ),
  );
