/** A person's calls to the fake's conversation: send, cancel, interrupt, resume, answer. The agent does nothing by itself. */
import type { FakeConversation } from "./fake-conversation.ts";

type Json = Readonly<Record<string, unknown>>;
type Say = (event: string, data: Json) => void;
type Done = { readonly status: number; readonly answer: Json | null };

interface World {
  readonly conversation: FakeConversation;
  sessions: Json[];
}

interface Call {
  /** Who calls. */
  readonly person: string;
  readonly method: string;
  readonly pathname: string;
  readonly body: string;
}

/** A person, as the author of messages and answers. */
const author = (name: string) => ({ kind: "user", user_id: name, name, trigger_slug: null, fire_id: null });
const AT = "2026-11-20T06:53:00.000Z";

const refusal = (status: number, code: string, error: string, details?: Json): Done => ({
  status,
  answer: { error, code, ...(details !== undefined && { details }) },
});

/** Performs a call and says what it changed. */
export const steer = (world: World, say: Say, { person, method, pathname, body }: Call): Done => {
  const { conversation } = world;
  const [, session = "", rest = ""] = /\/sessions\/([^/]+)\/(.*)$/.exec(pathname) ?? [];
  const [group, id = ""] = rest.split("/");
  const item = conversation.items.find((one) => one["id"] === id);
  const input = JSON.parse(body === "" ? "{}" : body) as Json;
  if (group === "models") {
    return conversation.models === null
      ? refusal(409, "session_not_running", "The session does not run.")
      : { status: 200, answer: conversation.models };
  }
  if (group === "messages" && method === "POST") return send(world, say, { person, session, input });
  if (group === "messages") {
    if (item?.["status"] !== "queued") return refusal(409, "already_sent", "The agent has this message.");
    say("item", { ...item, status: "cancelled", completed_at: AT });
    return { status: 204, answer: null };
  }
  if (group === "interrupt") {
    const interrupted = conversation.turn["state"] !== "idle";
    if (interrupted)
      say("state", { state: { state: "idle", since: AT, waiting_for: null }, queue_held: true });
    return { status: 200, answer: { interrupted } };
  }
  if (group === "queue") {
    say("state", { queue_held: false });
    return { status: 204, answer: null };
  }
  if (item?.["status"] !== "pending") {
    const { by, ...answer } = Object(item?.["answer"]) as Record<string, unknown>;
    return refusal(409, "request_settled", "This request was answered already.", { by, answer });
  }
  say("item", {
    ...item,
    status: "completed",
    completed_at: AT,
    answer: { by: author(person), at: AT, ...input },
  });
  return { status: 200, answer: { request: conversation.items.at(-1) } };
};

interface Sent {
  readonly person: string;
  readonly session: string;
  readonly input: Json;
}

const send = (world: World, say: Say, { person, session, input }: Sent): Done => {
  const { conversation } = world;
  const known = conversation.items.find(({ id }) => id === input["id"]);
  if (known !== undefined) {
    const isSame = JSON.stringify(known["content"]) === JSON.stringify(contentOf(conversation, input));
    return isSame
      ? { status: 200, answer: { message: known } }
      : refusal(409, "id_taken", "Another message has this id.");
  }
  world.sessions = world.sessions.map((one) =>
    one["id"] === session && one["status"] !== "running" ? { ...one, status: "provisioning" } : one,
  );
  if (conversation.held) say("state", { queue_held: false });
  say("item", {
    id: input["id"],
    rev: 1,
    kind: "message",
    role: "user",
    author: author(person),
    turn_id: null,
    parent_id: null,
    sandbox_id: null,
    status: "queued",
    content: contentOf(conversation, input),
    tool: null,
    plan: [],
    request: null,
    answer: null,
    model: null,
    usage: null,
    error: null,
    created_at: AT,
    completed_at: null,
  });
  return { status: 201, answer: { message: conversation.items.at(-1) } };
};

const contentOf = ({ files }: FakeConversation, { text, attachments = [] }: Json) => [
  ...(text === undefined ? [] : [{ type: "text", text }]),
  ...(attachments as readonly string[]).map((id) => {
    const { name, media_type } = files.get(id) ?? { name: "", media_type: "" };
    return { type: "file", name, media_type, attachment_id: id };
  }),
];
