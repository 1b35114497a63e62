/**
 * What a step of a conversation's machine means for its items. Both adapters use it, so that they cannot differ. The
 * draft knows the items that `stepConcerns` names.
 */
import { isClosed } from "../../domain/conversation/growing.ts";
import type { MessageDraft, RequestAnswer } from "../../domain/conversation/steering.ts";
import { storableText } from "../../domain/text.ts";
import {
  conversation,
  type ConversationCommand,
  type ConversationSnapshot,
} from "../../machines/conversation.ts";
import type { ConversationEvent } from "../../machines/conversation-events.ts";
import { type ConversationDraft, type ItemVersion, OWN_ITEM } from "./draft.ts";
import type { GivenAnswer, Item } from "../ports/sessions/conversations.ts";
import type { Change } from "../ports/journal.ts";

export type ConversationStep = Change<ConversationSnapshot, ConversationEvent, ConversationCommand>;

const START = conversation.start({}).snapshot;

/** A stored snapshot. One that was stored before the machine had a field gets that field's first value. */
export const storedSnapshot = (
  state: ConversationSnapshot["state"],
  context: Partial<ConversationSnapshot["context"]>,
): ConversationSnapshot => ({ state, context: { ...START.context, ...context } });

interface Answered {
  readonly requestId: string;
  readonly answer: RequestAnswer;
}

/** The requests that this step answers. */
const answeredBy = ({ commands }: ConversationStep): readonly Answered[] =>
  commands.flatMap((command) => (command.type === "answerRequest" ? [command] : []));

/** The message that an answer brings. */
const begunBy = (event: ConversationEvent) => (event.type === "answer.given" ? (event.begins ?? null) : null);

/** The ids of the items that a step concerns. */
export const stepConcerns = (step: ConversationStep): readonly string[] => {
  const { before, after, event } = step;
  const ids = [
    before.context.sending,
    after.context.sending,
    "messageId" in event ? event.messageId : null,
    begunBy(event)?.messageId ?? null,
    ...answeredBy(step).map(({ requestId }) => requestId),
  ];
  return [...new Set(ids.filter((id) => id !== null))];
};

const firstVersion = (id: string, message: MessageDraft, step: ConversationStep): ItemVersion => {
  const isSent = step.after.context.sending === id;
  return {
    ...OWN_ITEM,
    id,
    kind: "message",
    role: "user",
    author: message.author,
    status: isSent ? "sending" : "queued",
    turnId: id,
    content: [
      ...(message.text === "" ? [] : [{ type: "text" as const, text: storableText(message.text) }]),
      ...message.files,
    ],
    model: message.model,
    agent: message.agent,
    ...(message.effort !== undefined && { effort: message.effort }),
    createdAt: step.now,
    completedAt: null,
    sentAt: isSent ? step.now : null,
  };
};

/** Writes a version of an open item. One that is closed, or unknown, stays as it is. */
const change = (
  draft: ConversationDraft,
  id: string,
  to: Partial<Pick<Item, "status" | "completedAt" | "sentAt" | "error" | "answer">>,
): void => {
  const item = draft.get(id);
  if (item !== undefined && !isClosed(item.status)) draft.put({ ...item, ...to }, to.status === "accepted");
};

const noteEvent = (draft: ConversationDraft, step: ConversationStep): void => {
  const { event, now } = step;
  switch (event.type) {
    case "message.posted":
      // A second message with the same id is the first one, sent again.
      if (draft.get(event.messageId) === undefined)
        draft.put(firstVersion(event.messageId, event.message, step));
      return;
    case "message.cancelled":
      return change(draft, event.messageId, { status: "cancelled", completedAt: now });
    case "message.accepted":
      return change(draft, event.messageId, { status: "accepted", completedAt: now });
    case "message.refused":
      return change(draft, event.messageId, { status: "failed", error: event.error, completedAt: now });
    case "answer.given":
      if (event.begins !== undefined && draft.get(event.begins.messageId) === undefined)
        draft.put(firstVersion(event.begins.messageId, event.begins.message, step));
      return;
    default:
      return;
  }
};

/** Marks the message that comes back to the queue, and the one that goes to the runtime. */
const noteSending = (draft: ConversationDraft, { before, after, commands, now }: ConversationStep): void => {
  const { sending: was } = before.context;
  if (was !== null && after.context.queue.includes(was))
    change(draft, was, { status: "queued", sentAt: null });
  for (const command of commands)
    // A message that is new is written as sent already.
    if (command.type === "sendMessage" && draft.get(command.messageId)?.sentAt !== now)
      change(draft, command.messageId, { status: "sending", sentAt: now });
};

/** Who answers requests by this event. Null if no person did. */
const answerer = (event: ConversationEvent) => {
  if (event.type === "answer.given") return event.by;
  return event.type === "message.posted" ? event.message.author : null;
};

/** Writes what a step means. */
export const noteStep = (draft: ConversationDraft, step: ConversationStep): void => {
  noteEvent(draft, step);
  noteSending(draft, step);
  const by = answerer(step.event);
  for (const { requestId, answer } of answeredBy(step)) {
    const fullAnswer: GivenAnswer = { by, at: step.now, answer };
    change(draft, requestId, { answer: fullAnswer });
  }
  draft.setHeld(step.after.context.held);
};
