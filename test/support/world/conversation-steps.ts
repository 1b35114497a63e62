/** Steps of a conversation's actor, as its host saves them. */
import { expect } from "vitest";
import * as Effect from "effect/Effect";
import { conversation } from "../../../src/machines/conversation.ts";
import type { ConversationEvent } from "../../../src/machines/conversation-events.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { NOON } from "./world.ts";

export const ADA = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;

export const posted = (messageId: string, isUrgent = false): ConversationEvent => ({
  type: "message.posted",
  messageId,
  isUrgent,
  message: { author: ADA, text: `text of ${messageId}`, files: [], model: "p/m", agent: "build" },
});

export const reported = (sandboxId: string, ended: number, isWorking = false): ConversationEvent => ({
  type: "runtime.reported",
  sandboxId,
  seq: 0,
  ended,
  isWorking,
  requests: [],
  plans: [],
  isAttended: true,
});

/** One step of the actor, as its host saves it. */
export const step = Effect.fnUntraced(function* (
  id: string,
  event: ConversationEvent,
  at: { readonly now?: number; readonly version?: number; readonly completes?: string } = {},
) {
  const { memory } = yield* Conversations;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such conversation");
  const { snapshot, commands, accepted } = conversation.step(loaded.snapshot, event);
  expect([event.type, accepted]).toEqual([event.type, true]);
  return yield* memory.save({
    id,
    version: at.version ?? loaded.version,
    event,
    before: loaded.snapshot,
    after: snapshot,
    commands,
    completes: at.completes ?? null,
    now: at.now ?? NOON,
  });
});
