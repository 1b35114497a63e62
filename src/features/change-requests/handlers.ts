/** Handlers of api.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type * as Schema from "effect/Schema";
import { HttpApiBuilder } from "effect/http-api";
import { parseBranchName } from "../../domain/repository/git-ref.ts";
import { leakMessage, leaksIn, unsearchedMessage } from "../../domain/secret/leaked-secrets.ts";
import { namedSecrets } from "../../services/projects/project-secrets.ts";
import { namedWarnings, proposedMistakes } from "./work/proposed-files.ts";
import { listReader } from "../../http/callers/access.ts";
import type { Page } from "../../store/ports/page.ts";
import {
  ChangeRequests,
  type ChangeRequest,
  type ListedRequest,
  type ListRequest,
} from "./ports/change-requests.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Forbidden, notFound } from "../../http/api/errors.ts";
import { shownWork } from "../../http/steps/sessions/shown-work.ts";
import { withApiErrors, projectFor, requireProject, sessionFor } from "../../http/steps/answers.ts";
import { closeRequest, mergeRequest } from "./merging.ts";
import { openRequest } from "./opening.ts";
import { gitFailed, refGone } from "../../http/answers/refusals.ts";
import { comparisonWire, DIFF_LIMIT_BYTES, pageRequest } from "../../http/steps/wire.ts";
import {
  ChangeRequestsGroup,
  type EditRequest,
  type listQuery,
  type MergeRequest,
  type OpenRequest,
} from "./api.ts";
import { Remarks } from "./ports/remarks.ts";
import { Reviewers } from "./ports/reviewers.ts";
import {
  addRemark,
  editRemark,
  presentHead as headCommit,
  remarkWire,
  removeRemark,
  verdictWire,
} from "./review.ts";
import { askReviewer, reviewerWire, withdrawReviewer } from "./reviewers.ts";
import { ReviewsGroup } from "./review-api.ts";
import { compareRequest, diffRequest } from "./work/sides.ts";
import { changeRequestWire, listedWire } from "./wire.ts";
import { Platform } from "../../http/api/platform.ts";

export const open = Effect.fnUntraced(function* (pid: string, request: typeof OpenRequest.Type) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, pid);
  const head = yield* requestHead(caller, pid, request);
  const { title, description = "" } = request;
  return changeRequestWire(yield* openRequest(project, { head, title, description }));
});

/** The proposed branch: a session's, or one by name. A trigger's token may propose only its own session's branch. */
const requestHead = Effect.fnUntraced(function* (
  caller: Principal,
  pid: string,
  request: typeof OpenRequest.Type,
) {
  const head = request.session_id ?? request.head_ref;
  if (head === undefined || (request.session_id !== undefined && request.head_ref !== undefined)) {
    return yield* badRequest("session_id", "must be given, or `head_ref`, but not both");
  }
  if (caller.origin === "trigger" && head !== caller.sessionId) {
    return yield* new Forbidden({
      error: "A trigger token can only open a change request for the branch of its own session.",
      code: "forbidden",
    });
  }
  if (request.session_id !== undefined) {
    const session = yield* sessionFor(caller, { pid, sid: request.session_id });
    return { ref: session.id, sessionId: session.id };
  }
  const branch = parseBranchName(head);
  if (Result.isFailure(branch)) return yield* badRequest("head_ref", branch.failure.message);
  return { ref: branch.success, sessionId: null };
});

type NumberPath = { readonly pid: string; readonly number: number };

const findRequest = Effect.fnUntraced(function* ({ pid, number }: NumberPath) {
  yield* requireProject(yield* Caller, pid);
  const request = yield* (yield* ChangeRequests).get(pid, number);
  return request ?? (yield* notFound("change request"));
});

/** Warnings of secrets in the request's diff. */
const leaks = Effect.fnUntraced(function* (request: ChangeRequest) {
  const { projectId } = request;
  const secrets = yield* namedSecrets(projectId);
  if (secrets.length === 0) return [];
  const diff = yield* diffRequest(request, { maxBytes: DIFF_LIMIT_BYTES });
  const { leaks: added, cutIn } = leaksIn(diff, secrets);
  const searchWarning = { file: cutIn ?? "", line: null, message: unsearchedMessage(DIFF_LIMIT_BYTES) };
  return [
    ...added.map(({ file, secret }) => ({ file, line: null, message: leakMessage(secret) })),
    ...(cutIn === null ? [] : [searchWarning]),
  ];
});

const savePlace = ({ projectId, sessionId }: ChangeRequest) => ({ projectId, sessionId });

const detail = Effect.fnUntraced(function* (path: NumberPath) {
  const request = yield* findRequest(path);
  const comparison = yield* compareRequest(request);
  const warnings =
    request.status === "open"
      ? [...(yield* leaks(request)), ...(yield* proposedMistakes({ projectId: path.pid }, comparison))]
      : [];
  const verdicts = yield* (yield* Remarks).verdicts(request.id);
  const reviewers = yield* (yield* Reviewers).list(request.id);
  const { approvalsRequired } = yield* projectFor(yield* Caller, path.pid);
  return yield* shownWork(savePlace(request), {
    ...changeRequestWire(request),
    base_commit: comparison.base,
    head_commit: comparison.head,
    mergeable: request.status === "open" && comparison.mergeable,
    conflicts: request.status === "open" ? comparison.conflicts : [],
    warnings: namedWarnings(warnings),
    verdicts: verdicts.map((verdict) => verdictWire(verdict, { ...request, head: comparison.head })),
    reviewers: reviewers.map((reviewer) => reviewerWire(reviewer, verdicts)),
    approvals_required: approvalsRequired,
    ...comparisonWire(comparison),
  });
});

const listRequest = (
  { user }: Principal,
  { status, reviewer, session_id: sessionId, ...query }: Schema.Struct.Type<typeof listQuery>,
): ListRequest => ({
  ...pageRequest(query),
  reader: user.id,
  status: status ?? null,
  ...(sessionId !== undefined && { sessionId }),
  isReviewAsked: reviewer === "me",
});

/** Each project masks its own secrets. */
const shownPage = Effect.fnUntraced(function* ({ items, nextCursor }: Page<ListedRequest>) {
  const forms = yield* Effect.forEach(new Set(items.map(({ projectId }) => projectId)), (projectId) =>
    shownWork(
      { projectId, sessionId: null },
      items.filter((request) => request.projectId === projectId).map(listedWire),
    ),
  );
  const byId = new Map(forms.flat().map((request) => [request.id, request]));
  return {
    change_requests: items.flatMap(({ id }) => byId.get(id) ?? []),
    next_cursor: nextCursor,
  };
});

const listAll = Effect.fnUntraced(function* (query: Schema.Struct.Type<typeof listQuery>) {
  const caller = yield* Caller;
  const { accountId, projectId } = caller;
  const requests = yield* ChangeRequests;
  const request = listRequest(caller, query);
  return yield* shownPage(
    yield* projectId === null
      ? requests.listForReader({ accountId, userId: listReader(caller) }, request)
      : requests.list(projectId, request),
  );
});

export const merge = Effect.fnUntraced(function* (path: NumberPath, wish: typeof MergeRequest.Type) {
  const request = yield* findRequest(path);
  return changeRequestWire(yield* mergeRequest(request, wish));
});

/** The two texts that people read. */
export const edit = Effect.fnUntraced(function* (
  path: NumberPath,
  { title, description }: typeof EditRequest.Type,
) {
  if (title === undefined && description === undefined)
    return yield* badRequest("title", "must be given, or `description`");
  yield* findRequest(path);
  const change = {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    now: yield* Clock.currentTimeMillis,
  };
  const result = yield* (yield* ChangeRequests).edit(path.pid, path.number, change);
  return result === null ? yield* notFound("change request") : changeRequestWire(result);
});

export const close = Effect.fnUntraced(function* (path: NumberPath) {
  return changeRequestWire(yield* closeRequest(yield* findRequest(path)));
});

export const changeRequestsHandlers = HttpApiBuilder.group(
  Platform.add(ChangeRequestsGroup),
  "changeRequests",
  (handlers) =>
    handlers
      .handle("open", ({ params, payload }) =>
        withApiErrors(open(params.pid, payload)).pipe(
          Effect.catchTag("GitError", (error) => Effect.fail(gitFailed(error))),
        ),
      )
      .handle("list", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            const caller = yield* Caller;
            yield* requireProject(caller, params.pid);
            return yield* shownPage(
              yield* (yield* ChangeRequests).list(params.pid, listRequest(caller, query)),
            );
          }),
        ),
      )
      .handle("listAll", ({ query }) => withApiErrors(listAll(query)))
      .handle("get", ({ params }) =>
        withApiErrors(detail(params)).pipe(
          Effect.catchTag("GitError", (error) => Effect.fail(refGone(error))),
        ),
      )
      .handle("diff", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            const request = yield* findRequest(params);
            const diff = yield* diffRequest(request, { ...query, maxBytes: DIFF_LIMIT_BYTES });
            return yield* shownWork(savePlace(request), diff);
          }),
        ).pipe(Effect.catchTag("GitError", (error) => Effect.fail(refGone(error)))),
      )
      .handle("edit", ({ params, payload }) => withApiErrors(edit(params, payload)))
      .handle("merge", ({ params, payload }) => withApiErrors(merge(params, payload)))
      .handle("close", ({ params }) => withApiErrors(close(params)))
      .handle("askReviewer", ({ params }) =>
        withApiErrors(Effect.flatMap(findRequest(params), (request) => askReviewer(request, params.id))),
      )
      .handle("withdrawReviewer", ({ params }) =>
        withApiErrors(Effect.flatMap(findRequest(params), (request) => withdrawReviewer(request, params.id))),
      ),
);

export const reviewsHandlers = HttpApiBuilder.group(Platform.add(ReviewsGroup), "reviews", (handlers) =>
  handlers
    .handle("list", ({ params, query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const request = yield* findRequest(params);
          const page = yield* (yield* Remarks).list(request.id, pageRequest(query));
          const head = yield* headCommit(request);
          const remarks = yield* shownWork(
            savePlace(request),
            page.items.map((remark) => remarkWire(remark, head)),
          );
          return { remarks, next_cursor: page.nextCursor };
        }),
      ).pipe(Effect.catchTag("GitError", (error) => Effect.fail(refGone(error)))),
    )
    .handle("add", ({ params, payload }) =>
      withApiErrors(Effect.flatMap(findRequest(params), (request) => addRemark(request, payload))).pipe(
        Effect.catchTag("GitError", (error) => Effect.fail(refGone(error))),
      ),
    )
    .handle("edit", ({ params, payload }) =>
      withApiErrors(
        Effect.flatMap(findRequest(params), (request) => editRemark(request, params.id, payload)),
      ).pipe(Effect.catchTag("GitError", (error) => Effect.fail(refGone(error)))),
    )
    .handle("remove", ({ params }) =>
      withApiErrors(Effect.flatMap(findRequest(params), (request) => removeRemark(request, params.id))),
    ),
);
