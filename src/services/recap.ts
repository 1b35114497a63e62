/** Reads the recap for a fresh sandbox of a session (domain/recap.ts). */
import * as Effect from "effect/Effect";
import type { Recap } from "../domain/launch.ts";
import { recapOf } from "../domain/recap.ts";
import { Conversations, type Item } from "../store/ports/conversations.ts";

/** How many of the newest items a recap is made of. Its size bounds it further. */
const ITEMS_READ = 200;

/** The agent or the model of the newest message that names one. */
const lastChoice = (items: readonly Item[], name: "agent" | "model"): string | null =>
  items.findLast(
    ({ role, status, [name]: chosen }) => role === "user" && status === "accepted" && chosen !== null,
  )?.[name] ?? null;

/** @returns null if no runtime has had any item. */
export const readRecap = Effect.fnUntraced(function* (sessionId: string) {
  const { page, item } = yield* Conversations;
  const newest = yield* page(sessionId, { before: null, limit: ITEMS_READ }).pipe(
    Effect.catchTag("BadCursor", Effect.die),
  );
  if (newest === null) return null;
  const hasOlder = newest.nextCursor !== null;
  const prompt = hasOlder ? yield* item(sessionId, sessionId) : null;
  const items = [...(prompt === null ? [] : [prompt]), ...newest.items.toReversed()];
  const text = recapOf(items, hasOlder);
  if (text === null) return null;
  return { text, agent: lastChoice(items, "agent"), model: lastChoice(items, "model") } satisfies Recap;
});
