/** The raw routes of a conversation in the OpenAPI document. */
import { textAnswer, headerParameter, json, reading, refusal, type RawOperation } from "./parts.ts";

/** The whole of a session's conversation. */
export const archive = (form: "json" | "markdown"): RawOperation => ({
  tag: "live",
  id: `live.conversation_${form}`,
  summary: form === "json" ? "Read a whole conversation as JSON." : "Read a whole conversation as Markdown.",
  responses: {
    200:
      form === "json"
        ? json({ type: "object" }, "`{session_id, seq, state, usage, items}`. The oldest item is the first.")
        : textAnswer("text/markdown", "All items, oldest first, for people."),
    ...reading,
  },
});

export const attach: RawOperation = {
  tag: "live",
  id: "live.attach",
  summary: "Attach a file to a session, for a message that is posted later.",
  body: "*/*",
  parameters: [
    {
      name: "name",
      in: "query",
      required: true,
      description: "The file's name. A path is dropped.",
      schema: { type: "string" },
    },
  ],
  responses: {
    201: json(
      {
        type: "object",
        properties: {
          id: { type: "string", format: "uuid" },
          name: { type: "string" },
          media_type: { type: "string" },
          bytes: { type: "integer" },
          sha256: { type: "string" },
        },
        required: ["id", "name", "media_type", "bytes", "sha256"],
      },
      "The file is kept. Name its id in a message within 6 hours, or it is removed.",
    ),
    400: refusal("The name is missing, or the body is empty."),
    ...reading,
    408: refusal("The file did not arrive within 2 minutes."),
    409: refusal("The agent runtime takes no messages."),
    413: refusal("The file is larger than 10 MiB, or the conversation has no room for it."),
    422: refusal("The file contains the value of a secret."),
  },
};

export const upload: RawOperation = {
  ...attach,
  id: "live.upload",
  summary: "Upload a file for the first message of a session that is started later.",
  responses: {
    ...attach.responses,
    409: refusal("The project is archived or deleted."),
    413: refusal("The file is larger than 10 MiB, or the project has no room for it."),
  },
};

export const attachment: RawOperation = {
  tag: "live",
  id: "live.attachment",
  summary: "Read an attached file.",
  responses: {
    200: {
      description:
        "The file. Only PNG, JPEG, GIF and WebP have their own content type; others are downloads.",
      content: { "*/*": { schema: { type: "string", format: "binary" } } },
    },
    ...reading,
  },
};

export const conversationEvents: RawOperation = {
  tag: "live",
  id: "live.conversation",
  summary: "Stream a session's conversation.",
  parameters: [
    {
      name: "after",
      in: "query",
      required: false,
      description: "The `seq` after which the stream begins. Without it, the stream has only later versions.",
      schema: { type: "integer", minimum: 0 },
    },
    {
      name: "project",
      in: "query",
      required: false,
      description:
        "With `1`, the stream also says that something in the project, or in another one that the caller sees, has changed.",
      schema: { type: "integer", enum: [1] },
    },
    headerParameter("Last-Event-ID", "Resumes after this event. It wins over `after`."),
  ],
  responses: {
    200: textAnswer(
      "text/event-stream",
      "`item` has a version of an item, `state` has `{seq, state, queue_held, usage}`. Their id is the version's `seq`. `delta` has " +
        "no id: `{item_id, offset, text}` is text that was added to the item's last text part at this offset, in " +
        "UTF-16 code units. A reader whose text has another length ignores it. After `reset` a reader reads the " +
        "conversation again. An event has at most 96 KiB; a longer item is shortened and has `truncated: true`. " +
        "`project` has no id and no data.",
    ),
    400: refusal("`after` is not a whole number, or `project` is not 1."),
    ...reading,
    429: refusal("The token has too many open streams."),
  },
};
