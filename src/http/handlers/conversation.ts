/** Handlers of api/sessions/conversation.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { contentText } from "../../domain/conversation/conversation.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { Caller } from "../api/access.ts";
import { badRequest, notFound } from "../api/errors.ts";
import { PAGE_DEFAULT } from "../api/schemas.ts";
import { withApiErrors, ensureConversation, sessionFor } from "../steps/answers.ts";
import { instant } from "../steps/wire.ts";
import { conversationWire } from "../steps/sessions/conversation-wire.ts";
import { ConversationGroup } from "../api/sessions/conversation.ts";
import { Platform } from "../api/platform.ts";

const page = Effect.fnUntraced(function* (
  sessionId: string,
  { before = null, limit = PAGE_DEFAULT }: { readonly before?: string | null; readonly limit?: number },
) {
  yield* ensureConversation(sessionId);
  const portion = yield* (yield* Conversations)
    .page(sessionId, { before, limit })
    .pipe(Effect.catchTag("BadCursor", () => badRequest("before", "must be the cursor of an earlier page")));
  return portion === null ? yield* notFound("session") : conversationWire(portion);
});

/** How many messages a search shows. */
const HITS = 20;

const search = Effect.fnUntraced(function* (sessionId: string, words: string) {
  const hits = yield* (yield* Conversations).search(sessionId, { search: words, limit: HITS });
  return {
    found: hits.map(({ itemId, at, text: around }) => ({ item_id: itemId, at: instant(at), text: around })),
  };
});

/** The whole kept output of a tool. A short one is in its item alone. */
const output = Effect.fnUntraced(function* (sessionId: string, itemId: string) {
  const conversations = yield* Conversations;
  const item = yield* conversations.item(sessionId, itemId);
  if (item?.tool === undefined || item.tool === null) return yield* notFound("output");
  return (yield* conversations.output(sessionId, itemId)) ?? item.tool.output;
});

/** The whole text of an item, which an event may have cut. */
const text = Effect.fnUntraced(function* (sessionId: string, itemId: string) {
  const item = yield* (yield* Conversations).item(sessionId, itemId);
  if (item === null || !item.content.some(({ type }) => type === "text")) return yield* notFound("text");
  return contentText(item.content);
});

export const conversationHandlers = HttpApiBuilder.group(
  Platform.add(ConversationGroup),
  "conversation",
  (handlers) =>
    handlers
      .handle("get", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            return yield* page((yield* sessionFor(yield* Caller, params)).id, query);
          }),
        ),
      )
      .handle("search", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            return yield* search((yield* sessionFor(yield* Caller, params)).id, query.search ?? "");
          }),
        ),
      )
      .handle("output", ({ params }) =>
        withApiErrors(
          Effect.gen(function* () {
            return yield* output((yield* sessionFor(yield* Caller, params)).id, params.id);
          }),
        ),
      )
      .handle("text", ({ params }) =>
        withApiErrors(
          Effect.gen(function* () {
            return yield* text((yield* sessionFor(yield* Caller, params)).id, params.id);
          }),
        ),
      ),
);
