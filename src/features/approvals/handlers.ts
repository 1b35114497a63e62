/** Handlers of api.ts: what a person sees of a call that waits, and the decision. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { shownArguments } from "../../domain/connector/shown-arguments.ts";
import type { Redactor } from "../../domain/secret/redactor.ts";
import { projectRedactor } from "../../services/projects/project-secrets.ts";
import { withAudit } from "../../services/audit.ts";
import { openPart } from "./waiting-calls.ts";
import { Approvals, type Approval, type ApprovalMove } from "./ports/approvals.ts";
import { Caller } from "../../http/api/access.ts";
import { Conflict, notFound } from "../../http/api/errors.ts";
import { withApiErrors, requireProject } from "../../http/steps/answers.ts";
import { refuseSecrets } from "../../http/steps/sessions/message-secrets.ts";
import { pageRequest, wireForm } from "../../http/steps/wire.ts";
import { ApprovalsGroup, ApprovalWire } from "./api.ts";
import { Platform } from "../../http/api/platform.ts";

interface Params {
  readonly pid: string;
  readonly id: string;
}

const approvalForm = wireForm(ApprovalWire);
const showApproval = Effect.fnUntraced(function* (
  approval: Approval,
  secrets: Redactor,
  showsHidden = false,
) {
  const { call } = approval;
  const callArguments = yield* openPart(approval, "arguments");
  const visibleArguments =
    callArguments === null ? null : shownArguments(secrets, callArguments, showsHidden);
  return approvalForm({
    ...call,
    ...approval,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- arguments are an object
    arguments: visibleArguments as Readonly<Record<string, unknown>> | null,
    reason: approval.message,
  });
});

const list = Effect.fnUntraced(function* (
  pid: string,
  query: Parameters<typeof pageRequest>[0] & {
    readonly session_id?: string;
    readonly status?: Approval["status"];
    readonly hidden?: "show";
  },
) {
  yield* requireProject(yield* Caller, pid);
  const { session_id: sessionId, status } = query;
  const page = yield* (yield* Approvals).list(pid, { ...pageRequest(query), sessionId, status });
  const secrets = yield* projectRedactor(pid);
  const showsHidden = query.hidden === "show";
  const approvals = yield* Effect.forEach(page.items, (item) => showApproval(item, secrets, showsHidden));
  return { approvals, next_cursor: page.nextCursor };
});

/** The first decision counts. The others learn what became of the call. */
const alreadySettled = ({ status, decidedBy }: Approval) =>
  new Conflict({
    error: `The call does not wait for a decision any more. It is ${status}.`,
    code: "approval_settled",
    details: { status, decided_by: decidedBy },
  });

/** Decides on a call. Only the first decision of all people counts. */
export const decide = Effect.fnUntraced(function* ({ pid, id }: Params, wish: (by: string) => Decision) {
  const caller = yield* Caller;
  yield* requireProject(caller, pid);
  const approvals = yield* Approvals;
  const approval = yield* approvals.find(pid, id);
  if (approval === null) return yield* notFound("approval");
  const now = yield* Clock.currentTimeMillis;
  // A duty expires it within seconds. Until then, nothing that is late counts.
  const isLate = approval.status === "pending" && approval.expiresAt <= now;
  const move: ApprovalMove = isLate ? { type: "deadline.passed", now } : { ...wish(caller.user.id), now };
  const action = move.type === "approval.given" ? "approval.approved" : "approval.denied";
  const { connector, tool, sessionId } = approval.call;
  const row = { action, target: id, changes: { connector, tool, session_id: sessionId } } as const;
  const result = yield* approvals
    .move(id, move)
    .pipe(withAudit((moved) => (moved === null || isLate ? null : row)));
  if (result === null || isLate)
    return yield* alreadySettled(result ?? (yield* approvals.find(pid, id)) ?? approval);
  return yield* showApproval(result, yield* projectRedactor(pid));
});

type Decision =
  | { readonly type: "approval.given"; readonly by: string }
  | { readonly type: "denial.given"; readonly by: string; readonly reason: string | null };

const deny = Effect.fnUntraced(function* (params: Params, reason: string | null) {
  yield* requireProject(yield* Caller, params.pid);
  if (reason !== null) yield* refuseSecrets(params.pid, "The reason", (value) => reason.includes(value));
  return yield* decide(params, (by) => ({ type: "denial.given", by, reason }));
});

export const approvalsHandlers = HttpApiBuilder.group(Platform.add(ApprovalsGroup), "approvals", (handlers) =>
  handlers
    .handle("list", ({ params, query }) => withApiErrors(list(params.pid, query)))
    .handle("approve", ({ params }) =>
      withApiErrors(decide(params, (by) => ({ type: "approval.given", by }))),
    )
    .handle("deny", ({ params, payload }) => withApiErrors(deny(params, payload.reason ?? null))),
);
