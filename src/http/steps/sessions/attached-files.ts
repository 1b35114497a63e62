/** Rules for the files of one message. */
import * as Effect from "effect/Effect";
import { type AttachmentHead, MESSAGE_ATTACHMENTS_MAX } from "../../../domain/conversation/attachment.ts";
import { badRequest } from "../../api/errors.ts";

/** @param rule what each named file must be */
export const requireKnown = Effect.fnUntraced(function* (
  ids: readonly string[],
  heads: readonly AttachmentHead[],
  rule: string,
) {
  const unknown = ids.findIndex((id) => !heads.some((head) => head.id === id));
  if (unknown !== -1) return yield* badRequest(`attachments.${unknown}`, rule);
});

export const requireFewBytes = Effect.fnUntraced(function* (heads: readonly AttachmentHead[]) {
  const bytes = heads.reduce((sum, head) => sum + head.bytes, 0);
  if (bytes > MESSAGE_ATTACHMENTS_MAX)
    return yield* badRequest(
      "attachments",
      `must have at most ${MESSAGE_ATTACHMENTS_MAX} bytes together, but have ${bytes}`,
    );
});
