/** What people say of a change request: remarks on it and on its lines, and their verdicts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { GitBackend } from "../../git/port.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Conflict, Forbidden, notFound } from "../../http/api/errors.ts";
import { instant, wireForm } from "../../http/steps/wire.ts";
import type { ChangeRequest } from "./ports/change-requests.ts";
import { type AddRemark, type EditRemark, RemarkWire } from "./review-api.ts";
import { Remarks, REMARKS_MAX, type NamedVerdict, type Remark } from "./ports/remarks.ts";
import { isApproval, whyNotCounted } from "./rules/verdicts.ts";

const remarkForm = wireForm(RemarkWire);

export const remarkWire = ({ createdBy, createdByName, resolved, ...remark }: Remark, head: string | null) =>
  remarkForm({
    ...remark,
    outdated: remark.commit !== head,
    createdBy: { id: createdBy, name: createdByName },
    resolvedBy: resolved?.by ?? null,
    resolvedAt: resolved?.at ?? null,
  });

/** Of an ended request no approval counts any more. */
export const verdictWire = (
  { name, ...verdict }: NamedVerdict,
  request: { readonly head: string } & Pick<ChangeRequest, "status" | "createdBy">,
) => ({
  kind: verdict.kind,
  by: { id: verdict.by, name },
  at: instant(verdict.at),
  commit: verdict.commit,
  counts: request.status === "open" && isApproval(verdict, request),
  why_not: request.status === "open" && verdict.kind === "approval" ? whyNotCounted(verdict, request) : null,
});

/** The head branch's present commit, or null if the branch is gone. */
export const presentHead = ({ projectId, headRef, status, mergeSides }: ChangeRequest) =>
  status === "merged" && mergeSides !== null
    ? Effect.succeed(mergeSides.head)
    : Effect.flatMap(GitBackend, (git) => git.branchTip({ projectId }, headRef));

/** Checks what the schema cannot. */
const checkWish = Effect.fnUntraced(function* (
  request: ChangeRequest,
  wish: typeof AddRemark.Type,
  head: string | null,
) {
  const { kind = "comment", body = "", commit, place, reply_to: replyTo } = wish;
  if (body === "" && kind !== "approval") return yield* badRequest("body", "must say something");
  if (place !== undefined && place.last_line < place.first_line)
    return yield* badRequest("place.last_line", "must not be before `first_line`");
  if (kind === "comment") return { kind, body, place, replyTo };
  if (place !== undefined || replyTo !== undefined)
    return yield* badRequest("kind", "must be `comment` for a remark on lines and for an answer");
  if (request.status !== "open")
    return yield* new Conflict({
      error: `Change request #${request.number} is already ${request.status}.`,
      code: "not_open",
    });
  if (commit !== undefined && commit !== head)
    return yield* new Conflict({
      error: `${request.headRef} has another commit now. Look at what is new, and decide again.`,
      code: "head_moved",
      details: { head_commit: head },
    });
  return { kind, body, place, replyTo };
});

const tooManyRemarks = () =>
  new Conflict({
    error: `A change request has at most ${REMARKS_MAX} remarks. Delete some, or open another one.`,
    code: "too_many_remarks",
  });

const noSuchRemark = () =>
  new Conflict({
    error: "The remark that this answers does not exist, or is an answer itself.",
    code: "no_such_remark",
  });

export const addRemark = Effect.fnUntraced(function* (request: ChangeRequest, wish: typeof AddRemark.Type) {
  const { user } = yield* Caller;
  const head = yield* presentHead(request);
  const { kind, body, place, replyTo } = yield* checkWish(request, wish, head);
  const now = yield* Clock.currentTimeMillis;
  const remark = {
    id: yield* newUuid,
    requestId: request.id,
    kind,
    body,
    commit: wish.commit ?? head,
    place:
      place === undefined
        ? null
        : { file: place.file, side: place.side, firstLine: place.first_line, lastLine: place.last_line },
    replyTo: replyTo ?? null,
    createdBy: user.id,
    createdAt: now,
  };
  const adding = (yield* Remarks).add(request, remark);
  const addition = yield* kind === "comment"
    ? adding
    : adding.pipe(
        withAudit((entry) =>
          entry === null
            ? null
            : {
                action: "change_request.verdict" as const,
                target: `#${request.number}`,
                changes: { number: request.number, verdict: kind, commit: head },
              },
        ),
      );
  if (addition !== null) return remarkWire(addition, head);
  const thread = replyTo === undefined ? null : yield* (yield* Remarks).get(request.id, replyTo);
  return yield* replyTo === undefined || thread?.replyTo === null ? tooManyRemarks() : noSuchRemark();
});

const ownOnly = new Forbidden({
  error: "Only its author can change or delete a remark.",
  code: "forbidden",
});

/** A remark's text is its author's. All who may talk about the request may resolve it. */
export const editRemark = Effect.fnUntraced(function* (
  request: ChangeRequest,
  id: string,
  edit: typeof EditRemark.Type,
) {
  const { user } = yield* Caller;
  const remarks = yield* Remarks;
  const { body, resolved } = edit;
  if (body === undefined && resolved === undefined)
    return yield* badRequest("body", "must be given, or `resolved`");
  let remark = yield* remarks.get(request.id, id);
  if (remark === null) return yield* notFound("remark");
  const at = yield* Clock.currentTimeMillis;
  if (body !== undefined) {
    if (remark.createdBy !== user.id) return yield* ownOnly;
    remark = yield* remarks.edit(request, id, { body, at });
  }
  if (resolved !== undefined)
    remark = yield* remarks.resolve(request, id, { by: resolved ? user.id : null, at });
  if (remark === null) return yield* notFound("remark");
  return remarkWire(remark, yield* presentHead(request));
});

export const removeRemark = Effect.fnUntraced(function* (request: ChangeRequest, id: string) {
  const { user } = yield* Caller;
  const remarks = yield* Remarks;
  const remark = yield* remarks.get(request.id, id);
  if (remark === null) return yield* notFound("remark");
  if (remark.createdBy !== user.id) return yield* ownOnly;
  yield* remarks.remove(request, id, yield* Clock.currentTimeMillis);
});
