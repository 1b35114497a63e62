/** Reads what opencode has of a conversation: its listings, which are the truth. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { HttpFailure, type HttpAnswer } from "../../http/client.ts";
import type { OpencodeConversation } from "./conversation.ts";
import { readMessage, type Recorded } from "./records.ts";

/** Messages in one answer. */
const PAGE_MESSAGES = 20;
/** How many messages of a session are read, newest first, and how much of them in bytes. Older ones are left out. */
const MESSAGES_MAX = 2000;
const MESSAGES_BYTES_MAX = 64 * 1024 * 1024;
/** How many subagents' sessions are read: the newest. */
const CHILDREN_MAX = 100;
/** opencode's cursor to the messages before a page. */
const CURSOR = "x-next-cursor";

/** Calls that read. */
export interface Reads {
  readonly get: <A>(path: string, schema: Schema.Decoder<A>) => Effect.Effect<A, HttpFailure>;
  readonly page: (path: string) => Effect.Effect<HttpAnswer, HttpFailure>;
  /** Sessions with a turn in progress. */
  readonly busySessions: Effect.Effect<readonly string[], HttpFailure>;
}

const Records = Schema.Array(Schema.Unknown);
const Page = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ info: Schema.Unknown, parts: Schema.Array(Schema.Unknown) })),
);

/** Reads the whole conversation. Events may come meanwhile. */
export const readConversation = Effect.fnUntraced(function* (api: Reads, conversation: OpencodeConversation) {
  conversation.listedSessions(yield* api.get("/session?roots=true", Records));
  const { root } = conversation;
  if (root === null) return conversation.listedBusy([]);
  conversation.listedMessages(yield* listMessages(api, root, MESSAGES_MAX));
  const read = new Set<string>();
  for (;;) {
    const child = conversation.children.slice(-CHILDREN_MAX).find((id) => !read.has(id));
    if (child === undefined) break;
    read.add(child);
    conversation.listedMessages(yield* listMessages(api, child, MESSAGES_MAX));
  }
  for (const kind of ["question", "permission"] as const) {
    const before = conversation.asked.filter((id) => id.startsWith(PREFIX[kind]));
    const open = yield* readRequests(api, kind);
    if (open !== null) conversation.listedRequests(open, before);
  }
  conversation.listedBusy(yield* api.busySessions);
  yield* settleConversation(api, conversation);
});

const PREFIX = { question: "que_", permission: "per_" } as const;

/** The open requests. Null if opencode cannot list them: it fails on a permission for a call without all arguments. */
export const readRequests = (
  api: Reads,
  kind: "question" | "permission",
): Effect.Effect<readonly unknown[] | null, HttpFailure> =>
  Effect.catch(api.get<readonly unknown[] | null>(`/${kind}`, Records), (failure) =>
    failure.status === 400 ? Effect.succeed(null) : Effect.fail(failure),
  );

/**
 * Ends messages that opencode left open, as it does when it is killed: those that were open before and after it was
 * seen at rest.
 */
export const settleConversation = Effect.fnUntraced(function* (
  api: Reads,
  conversation: OpencodeConversation,
) {
  const { root, open } = conversation;
  if (root === null || open.length === 0 || (yield* api.busySessions).includes(root)) return;
  for (const sessionId of new Set(open.map((message) => message.sessionId)))
    conversation.listedMessages(yield* listMessages(api, sessionId, PAGE_MESSAGES));
  if ((yield* api.busySessions).includes(root)) return;
  conversation.end(open.map(({ id }) => id));
});

/**
 * Reads the newest messages of the agent session, which was seen at rest, and ends what is open in it. If events come late
 * or never, the conversation is whole after it. "busy": the session is at work again.
 */
export const readAtRest = Effect.fnUntraced(function* (
  api: Reads,
  conversation: OpencodeConversation,
  session: { readonly id: string; readonly title: string },
) {
  const messages = yield* listMessages(api, session.id, PAGE_MESSAGES);
  if ((yield* api.busySessions).includes(session.id)) return "busy" as const;
  conversation.listedSessions([session]);
  conversation.listedMessages(messages);
  yield* settleConversation(api, conversation);
  conversation.rests();
  return messages;
});

/** A session's newest messages, oldest first. */
const listMessages = Effect.fnUntraced(function* (api: Reads, sessionId: string, max: number) {
  const pages: (readonly Recorded[])[] = [];
  let before = "";
  let length = 0;
  for (let count = 0; count < max && length < MESSAGES_BYTES_MAX; count += PAGE_MESSAGES) {
    const path = `/session/${sessionId}/message?limit=${PAGE_MESSAGES}${before}`;
    const { body, headers } = yield* api.page(path);
    const records = yield* Effect.mapError(Schema.decodeUnknownEffect(Page)(body), () => UNEXPECTED);
    pages.unshift(records.flatMap((record) => readMessage(record) ?? []));
    length += body.length;
    const cursor = headers[CURSOR];
    if (typeof cursor !== "string") break;
    before = `&before=${encodeURIComponent(cursor)}`;
  }
  return pages.flat();
});

const UNEXPECTED = new HttpFailure({
  status: null,
  message: "the agent runtime listed its messages in an unexpected form",
});
