/** Puts the first message of a session, which has files, an effort or a mode, into its conversation. The message waits there until the sandbox runs. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { derivedUuid } from "../../domain/ids.ts";
import { Actors } from "../../services/actors.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { Uploads } from "../../store/ports/sessions/uploads.ts";
import { deliver } from "../delivery.ts";

/** Performed again after a crash: a file and a message are kept once. */
export const firstMessagePoster = Effect.gen(function* () {
  const conversations = yield* Conversations;
  const uploads = yield* Uploads;
  const actors = yield* Actors;
  return Effect.fnUntraced(function* ({ id, createdBy, firstMessage }: Session) {
    if (firstMessage === undefined || firstMessage === null) return;
    const { text, attachments, author, effort, mode = null } = firstMessage;
    const now = yield* Clock.currentTimeMillis;
    if ((yield* conversations.get(id)) === null) yield* conversations.open(id, now);
    for (const one of attachments) {
      const upload = yield* uploads.get(one);
      if (upload !== null) yield* conversations.keepAttachment(id, { ...upload, now });
    }
    const heads = yield* conversations.attachmentHeads(id, attachments);
    yield* deliver(
      actors.conversation(id, {
        type: "message.posted",
        messageId: derivedUuid("first message", id),
        isUrgent: false,
        message: {
          author: { kind: "user", userId: createdBy, name: author, triggerSlug: null, fireId: null },
          text,
          files: heads.map(({ id: attachment_id, name, media_type }) => ({
            type: "file",
            name,
            media_type,
            attachment_id,
          })),
          model: null,
          agent: mode,
          ...(effort !== undefined && { effort }),
        },
      }),
    );
    yield* uploads.handedOver(id, attachments);
  });
});
