/**
 * Performs calls that a person approved, ends those that no person decided, and hands results over (api.md 5 "Approvals"). It looks
 * at the stored states, and takes no input.
 *
 *  A1 The node that moves an approval to `calling` sends its call, and no other one does (approvals.ts Q2).
 *  A2 A call is decided again before it is sent: rule, pin, origin, credential and limits are those of now. Where they
 *     do not allow it any more, it is refused with the reason.
 *  A3 After it began, a call is not sent again. If its end is not written within `LOST_MS`, it is `unknown`.
 *  A4 A call that hangs delays no other one: each has its own fiber, up to `AT_ONCE`.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { urlOrigin } from "../../domain/connector/connector-credential.ts";
import { shownName } from "../../domain/connector/tool-name.ts";
import { openPart, sealPart } from "./waiting-calls.ts";
import { projectExecutor } from "../../services/connectors/connectors.ts";
import {
  CALL_LIMITS,
  decide,
  type Arguments,
  type ToolRequest,
} from "../../services/connectors/executor-decision.ts";
import { callServer, callOutcome, type Outcome } from "../../services/connectors/executor-outcome.ts";
import { Approvals, RESULT_KEPT_MS, type Approval, type ApprovalMove } from "./ports/approvals.ts";
import { Events } from "../../store/ports/events.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { People } from "../../store/ports/people/people.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { deliver } from "./delivery.ts";
import { DUTIES } from "../../services/duties.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";

const NAME = "approvals";
/** How many calls and deliveries this node performs at a time. */
const AT_ONCE = 32;
/** A call lasts at most 60 s. One without an end after this time was cut off with its node. */
export const LOST_MS = 90_000;
export const LOST = "The service was stopped during the call. The tool may have run.";
/** Events that come together are looked at together. */
const GATHER = "50 millis";

const move = Effect.fnUntraced(function* (id: string, change: DistributiveOmit<ApprovalMove, "now">) {
  const now = yield* Clock.currentTimeMillis;
  return yield* (yield* Approvals).move(id, { ...change, now });
});
type DistributiveOmit<T, K extends keyof T> = T extends unknown ? Omit<T, K> : never;

/** Why the session may not call any more. Null if it may. */
const endOfSession = Effect.fnUntraced(function* ({ call: { sessionId, userId, startedBy } }: Approval) {
  const session = yield* (yield* Sessions).get(sessionId);
  if (session === null || session.deletedAt !== null) return "The session was deleted.";
  if (startedBy === "user" && !(yield* (yield* People).isActive(userId)))
    return "The person who started the session is deactivated.";
  return null;
});

/** The call as it was asked, if its connector still is where it was. Otherwise the reason. */
const askedBy = Effect.fnUntraced(function* (approval: Approval) {
  const { projectId, call } = approval;
  const sessionEnd = yield* endOfSession(approval);
  if (sessionEnd !== null) return sessionEnd;
  const callArguments = yield* openPart(approval, "arguments");
  if (callArguments === null) return "Its stored arguments cannot be opened.";
  const executor = yield* projectExecutor(projectId);
  const connector = executor?.connectors.find(({ slug }) => slug === call.connector);
  if (executor === null || connector === undefined)
    return `The project does not have the connector ${call.connector} any more.`;
  if (urlOrigin(connector.url) !== call.origin)
    return `The connector ${call.connector} moved to another server after the call was asked for.`;
  const name = shownName(connector.slug, call.tool);
  return { caller: call, executor, connector, name, given: callArguments as Arguments } satisfies ToolRequest;
});

/** A2. The call to send, or the reason why none is sent. */
const readyToSend = Effect.fnUntraced(function* (approval: Approval) {
  const call = yield* askedBy(approval);
  if (typeof call === "string") return call;
  const decision = yield* decide(call);
  if (decision.refused !== null) return decision.refused;
  if (decision.pin !== approval.call.pin)
    return `The tool ${approval.call.tool} of ${approval.call.connector} was changed after the call was asked for. Ask again to call it as it is now.`;
  return { asked: call, decision };
});

/** Writes the end of a call. */
const settle = Effect.fnUntraced(function* (approval: Approval, { end, result }: Outcome) {
  const { outcome, ...about } = end;
  if (outcome === "unknown") {
    const { message, upstreamStatus } = about;
    yield* move(approval.id, { type: "call.lost", message: message ?? LOST, upstreamStatus });
    return;
  }
  const sealedResult = yield* sealPart(approval, "result", result);
  yield* move(approval.id, { type: "call.ended", outcome, ...about, sealedResult });
});

/** Performs an approved call once (A1, A3). */
export const perform = Effect.fnUntraced(function* (id: string) {
  const approvals = yield* Approvals;
  const approval = yield* approvals.get(id);
  if (approval?.status !== "approved") return;
  const ready = yield* readyToSend(approval);
  if (typeof ready === "string") {
    yield* move(id, { type: "call.refused", message: ready });
    return;
  }
  const { asked, decision } = ready;
  const beginning = yield* approvals.begin(id, { limits: CALL_LIMITS, now: yield* Clock.currentTimeMillis });
  // The next round tries again if a limit is reached.
  if (beginning !== "begun") return;
  yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(callServer(asked.connector, decision, asked.given)));
      const settling = settle(approval, callOutcome(exit, asked.connector, id));
      // An outage of the database is waited out, unless the service stops meanwhile: then the call is unknown (A3).
      yield* Effect.catch(settling, () => restore(waitOutOutage(NAME, settling)));
    }),
  );
});

type Due = Pick<Approval, "id" | "status">;
type Work = Effect.Services<ReturnType<typeof perform> | ReturnType<typeof deliver>>;

/** The next step of an approval in this state. */
const work = ({ id, status }: Due): Effect.Effect<void, StoreError, Work> => {
  switch (status) {
    case "approved":
      return perform(id);
    case "calling":
      return Effect.asVoid(move(id, { type: "call.lost", message: LOST, upstreamStatus: null }));
    case "pending":
      return Effect.asVoid(move(id, { type: "deadline.passed" }));
    default:
      return deliver(id);
  }
};

/** One round: begins what is due, up to the places that are free (A4). `busy` has the ids that are under way here. */
export const makeRound = (busy: Set<string>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope;
    return Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      const due = yield* (yield* Approvals).due(now, now - LOST_MS, AT_ONCE * 2);
      for (const one of due.filter(({ id }) => !busy.has(id)).slice(0, AT_ONCE - busy.size)) {
        busy.add(one.id);
        const release = Effect.sync(() => busy.delete(one.id));
        yield* Effect.forkIn(Effect.ensuring(dutyPart(NAME, work(one)), release), scope);
      }
    });
  });

/** A small step of retention: removes results that were delivered long ago. @returns how many */
export const pruneResults = Effect.fnUntraced(function* (now: number) {
  return yield* (yield* Approvals).pruneResults(now - RESULT_KEPT_MS);
});

export const approvalsLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const events = yield* Events;
    const round = yield* makeRound(new Set());
    yield* runDuty("approvals", {
      round,
      periodMs: DUTIES.approvals.periodMs,
      signal: Effect.andThen(events.changed(null), Effect.sleep(GATHER)),
    });
  }),
);
