import { attachmentIds } from "../../domain/conversation/conversation.ts";
import type { Item } from "../ports/sessions/conversations.ts";

/** The ids of the attachments that these messages of people have. */
export const attachedTo = (items: readonly Item[]): readonly string[] =>
  items
    .filter(({ kind, role }) => kind === "message" && role === "user")
    .flatMap(({ content }) => attachmentIds(content));
