/**
 * Puts the result of a call into its session's conversation, if no caller waits for it (api.md 5 "Approvals").
 *
 *  J1 The message's id follows from the call's, and the row says when it was delivered. So a delivery that is repeated after a crash, or
 *     on two nodes, is one message.
 *  J2 A session that the service stopped by itself starts again first, after its stop if that is under way (actors/awaken.ts).
 *     Without a free slot, the message waits for the next start.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { Actors } from "../../services/actors.ts";
import { awaken } from "../../actors/awaken.ts";
import { SERVICE_AUTHOR } from "../../domain/conversation/conversation.ts";
import { derivedUuid } from "../../domain/ids.ts";
import { agentResult } from "./waiting-calls.ts";
import type { AgentResult } from "../../services/connectors/executor-decision.ts";
import { Approvals, type Approval } from "./ports/approvals.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { Sessions, type Session } from "../../store/ports/sessions/sessions.ts";
import { takesMessages } from "../../services/projects/agents.ts";
import { projectRedactor } from "../../services/projects/project-secrets.ts";

/** How much of a result a message has, in characters. The agent reads the rest with call_result. */
const TEXT_MAX = 64 * 1024;

/** A part of a result, as text. */
const partText = (part: unknown): string => {
  if (typeof part === "object" && part !== null && "text" in part && typeof part.text === "string")
    return part.text;
  const type = typeof part === "object" && part !== null && "type" in part ? String(part.type) : "content";
  return `[${type}: read it with call_result]`;
};

const resultText = ({ id, status, call }: Approval, { content, isError }: AgentResult): string => {
  const text = content.map(partText).join("\n");
  if (status !== "done") return text;
  const rest = text.length > TEXT_MAX ? `\n\n[cut. call_result with the id ${id} gives all of it]` : "";
  const what = isError ? "answered with an error" : "answered";
  return `The call of ${call.tool} of the connector ${call.connector} (${id}) was approved and performed. The tool ${what}:\n\n${text.slice(0, TEXT_MAX).toWellFormed()}${rest}`;
};

const post = Effect.fnUntraced(function* (approval: Approval, session: Session) {
  const messageId = derivedUuid(approval.id, "result");
  const conversations = yield* Conversations;
  const isPosted = Effect.map(conversations.item(session.id, messageId), (item) => item !== null);
  if (yield* isPosted) return true;
  const redactor = yield* projectRedactor(session.projectId);
  const text = redactor.redact(resultText(approval, yield* agentResult(approval)));
  yield* awaken(session);
  yield* (yield* Actors).conversation(session.id, {
    type: "message.posted",
    messageId,
    isUrgent: false,
    message: { author: SERVICE_AUTHOR, text, files: [], model: null, agent: null },
  });
  // Not if the queue is full. Then a later round tries again.
  return yield* isPosted;
});

/** Hands one settled call over. */
export const deliver = Effect.fnUntraced(
  function* (id: string) {
    const approvals = yield* Approvals;
    const approval = yield* approvals.get(id);
    const now = yield* Clock.currentTimeMillis;
    if (approval === null || approval.deliveredAt !== null || approval.attendedUntil > now) return;
    const session = yield* (yield* Sessions).get(approval.call.sessionId);
    // An agent that takes no messages asks with call_result.
    const isThere =
      session !== null &&
      session.deletedAt === null &&
      (yield* takesMessages(session.projectId, session.agentName));
    if (isThere && (yield* (yield* Conversations).open(session.id, now)) !== null)
      if (!(yield* post(approval, session))) return;
    yield* approvals.move(id, { type: "result.delivered", now });
  },
  // The next round tries again.
  Effect.catchTags({
    CapReached: Effect.die,
    ActorNotFound: () => Effect.void,
    ActorUnavailable: () => Effect.void,
    MailboxFull: () => Effect.void,
  }),
);
