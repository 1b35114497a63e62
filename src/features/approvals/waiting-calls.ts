/**
 * Calls that wait for a person, as the agent sees them: asking, waiting for the result, and asking for it again
 * (api.md 5 "Approvals").
 *
 *  F1 The row is written before anything else. Waiting changes nothing but the lease of the one who waits.
 *  F2 A caller that waits takes the result. After its lease, the result becomes a message (src/features/approvals/duty.ts). The
 *     row says once who got it.
 *  F3 An agent asks about the calls of its own session only.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { APPROVAL_MS, approvalPlace, isSettled } from "./rules/approval.ts";
import { NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { Approvals, type Approval, type ApprovalLimits } from "./ports/approvals.ts";
import { Events } from "../../store/ports/events.ts";
import type { NewCall } from "../../store/ports/connectors/executor-calls.ts";
import { CallApproval, type TellProgress } from "../../services/connectors/call-approval.ts";
import { Entropy } from "../../services/entropy.ts";
import {
  CALL_LIMITS,
  onRecord,
  textResult,
  type AgentCaller,
  type AgentResult,
  type Arguments,
} from "../../services/connectors/executor-decision.ts";
import { Keyring } from "../../services/keyring.ts";

/** How long a caller waits. */
export const WAIT_MS = 120_000;
/** How often a caller hears that it still waits, in ms. Tests set less. */
export const ProgressTime = Context.Reference<number>("platform/approvals/ProgressTime", {
  defaultValue: () => 10_000,
});
/** How long a lost signal delays a caller. */
const POLL_MS = 2_000;
/** Signals that come together are read together. */
const GATHER = "50 millis";
/** A caller that died is known to be gone after this time. */
const LEASE_MS = 30_000;
export const OPEN_LIMIT = 20;
const LIMITS: ApprovalLimits = { ...CALL_LIMITS, open: OPEN_LIMIT };

const FULL = {
  session_full: `This session has ${OPEN_LIMIT} calls that wait for a person. Wait until some of them are decided.`,
  connector_busy: `The connector had ${CALL_LIMITS.perConnector} calls in the last minute. Wait a moment.`,
} as const;

/** Seals a part of an approval. */
export const sealPart = Effect.fnUntraced(function* (
  place: { readonly id: string; readonly projectId: string },
  part: "arguments" | "result",
  value: unknown,
) {
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const { secrets } = yield* Keyring;
  return sealSecret(secrets, approvalPlace(place, part), { value: JSON.stringify(value), nonce });
});

/** Opens a sealed part. Null if it was removed, or if it cannot be opened. */
export const openPart = Effect.fnUntraced(function* (approval: Approval, part: "arguments" | "result") {
  const envelope = part === "arguments" ? approval.sealedArguments : approval.sealedResult;
  if (envelope === null) return null;
  const opened = unsealSecret((yield* Keyring).secrets, approvalPlace(approval, part), envelope);
  return Result.isSuccess(opened) ? (JSON.parse(opened.success) as unknown) : null;
});

const WAITING: Readonly<Record<string, string>> = {
  pending: "waits for a person's approval",
  approved: "is approved and about to be performed",
  calling: "is being performed",
};

/** What the agent hears about an approval: its result, or its state and what to do. */
export const agentResult = Effect.fnUntraced(function* (
  approval: Approval,
): Effect.fn.Return<AgentResult, never, Keyring> {
  const { id, status, message, call } = approval;
  const what = `The call of ${call.tool} of the connector ${call.connector}`;
  const because = message === null ? "" : ` The reason: ${message}`;
  const failureResult = (text: string) => textResult(onRecord(`${what} ${text}`, id), true);
  switch (status) {
    case "pending":
    case "approved":
    case "calling":
      return textResult(
        `${onRecord(`${what} ${WAITING[status]}.`, id)} Go on with other work, or end your turn: the result comes as a message into this conversation. call_result with this id gives the state. Do not change the call to try again; the same call joins this one.`,
      );
    case "denied":
      // The page knows a denied call by this sentence (src/domain/conversation/tool-words.ts).
      return failureResult(`was denied by a person, and was not made.${because}`);
    case "refused":
      return failureResult(`was approved, but it was not made.${because}`);
    case "expired":
      return failureResult("was not made: no person decided on it within 24 hours.");
    case "unknown":
      return failureResult(`was made, and its result is not known.${because} It is not called again.`);
    case "done": {
      const result = yield* openPart(approval, "result");
      return result === null
        ? failureResult(`was performed (${call.outcome}). Its result is not kept any more.`)
        : (result as AgentResult);
    }
  }
});

const release = Effect.fnUntraced(function* (id: string) {
  yield* (yield* Approvals).attend(id, yield* Clock.currentTimeMillis);
});

/** Waits until the call is settled, or for `WAIT_MS`. */
const settledInTime = Effect.fnUntraced(function* (
  { id, projectId }: { readonly id: string; readonly projectId: string },
  tell: TellProgress,
) {
  const approvals = yield* Approvals;
  const events = yield* Events;
  const progressMs = yield* ProgressTime;
  const begunAt = yield* Clock.currentTimeMillis;
  let [toldAt, heldUntil] = [begunAt, begunAt];
  for (;;) {
    const now = yield* Clock.currentTimeMillis;
    if (heldUntil - now < LEASE_MS / 2) {
      heldUntil = now + LEASE_MS;
      yield* approvals.attend(id, heldUntil);
    }
    const approval = yield* approvals.get(id);
    const left = begunAt + WAIT_MS - now;
    if (approval === null || isSettled(approval.status) || left <= 0) return approval;
    if (now - toldAt >= progressMs) {
      toldAt = now;
      yield* tell(now - begunAt);
    }
    const signal = Effect.andThen(events.changed(projectId), Effect.sleep(GATHER));
    yield* Effect.raceFirst(signal, Effect.sleep(Math.min(POLL_MS, progressMs, left)));
  }
});

/** The result for the agent, which has it then (F2). */
const takeResult = Effect.fnUntraced(function* (approval: Approval) {
  const result = yield* agentResult(approval);
  if (isSettled(approval.status) && approval.deliveredAt === null)
    yield* (yield* Approvals).move(approval.id, {
      type: "result.delivered",
      now: yield* Clock.currentTimeMillis,
    });
  return result;
});

const GONE = textResult("The service does not know this call any more.", true);

/** Stores a call that waits for a person (F1), and waits for its result. */
const askPerson = Effect.fnUntraced(function* (row: NewCall, args: Arguments, tell: TellProgress) {
  const approvals = yield* Approvals;
  const entry = yield* approvals.ask(
    {
      call: row,
      sealedArguments: yield* sealPart(row, "arguments", args),
      expiresAt: row.at + APPROVAL_MS,
      attendedUntil: row.at + LEASE_MS,
    },
    LIMITS,
  );
  if (typeof entry === "string") return textResult(FULL[entry], true);
  const place = { id: entry.id, projectId: row.projectId };
  const waiting = Effect.gen(function* () {
    const approval = yield* settledInTime(place, tell);
    return approval === null ? GONE : yield* takeResult(approval);
  });
  // This holds even if the agent leaves meanwhile. If the database is away, the lease ends by itself.
  return yield* Effect.ensuring(waiting, Effect.ignore(release(entry.id)));
});

/** The state or the result of a call of this session (F3). */
const callResult = Effect.fnUntraced(function* ({ projectId, sessionId }: AgentCaller, id: string) {
  const approval = yield* (yield* Approvals).find(projectId, id);
  if (approval?.call.sessionId !== sessionId)
    return textResult("This session has no call with this id.", true);
  return yield* takeResult(approval);
});

/** The core's way to these calls. */
export const callApprovalLayer = Layer.effect(
  CallApproval,
  Effect.gen(function* () {
    const services = Context.make(Approvals, yield* Approvals).pipe(
      Context.add(Events, yield* Events),
      Context.add(Keyring, yield* Keyring),
    );
    return {
      ask: (row, args, tell) => Effect.provideContext(askPerson(row, args, tell), services),
      result: (caller, id) => Effect.provideContext(callResult(caller, id), services),
    };
  }),
);
