import type { Item } from "./ports/conversations.ts";

/** The ids of the attachments that these messages of people have. */
export const attachedTo = (items: readonly Item[]): readonly string[] =>
  items
    .filter(({ kind, role }) => kind === "message" && role === "user")
    .flatMap(({ content }) =>
      content.flatMap((part) =>
        part.type === "file" && part.attachment_id !== null ? [part.attachment_id] : [],
      ),
    );
