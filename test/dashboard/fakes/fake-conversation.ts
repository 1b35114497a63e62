/** A session's conversation over plain objects: its pages, its events from a number on, and what a person does with it. */
import { randomUUID } from "node:crypto";
import type * as http from "node:http";
import { steer } from "./fake-steering.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FakeFile {
  readonly name: string;
  readonly media_type: string;
  readonly content: Buffer;
}

export interface FakeConversation {
  /** The current version of each item. */
  items: Json[];
  turn: Json;
  usage: Json;
  /** Whether the queue is paused. */
  held: boolean;
  seq: number;
  /** What a message can choose; null: the session does not run. */
  models: Json | null;
  /**
   * What happens to the next requests that change something: "unavailable" is answered with 503 and does nothing, "lost"
   * does it and answers nothing.
   */
  faults: ("unavailable" | "lost")[];
  /** Attached files, by their ids. */
  readonly files: Map<string, FakeFile>;
  /** Refuses to be read, in these words. */
  readonly broken?: string;
  /** The versions that a reader can resume from. */
  readonly history: { readonly seq: number; readonly event: string; readonly data: Json }[];
}

const WAITING = new Set(["queued", "sending"]);

const frame = (event: string, data: Json, seq?: number): string =>
  `${seq === undefined ? "" : `id: ${seq}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

const placeOf = (item: Json): number => Number(item["place"]);

const pageOf = ({ items, turn, usage, held, seq }: FakeConversation, query: URLSearchParams): Json => {
  const before = Number(query.get("before") ?? Infinity);
  const limit = Number(query.get("limit"));
  const found = items.filter((item) => placeOf(item) < before).toSorted((a, b) => placeOf(b) - placeOf(a));
  const page = found.slice(0, limit);
  return {
    items: page,
    state: turn,
    usage,
    seq,
    queue: items.filter((item) => WAITING.has(String(item["status"]))),
    requests: items.filter((item) => item["kind"] === "request" && item["status"] === "pending"),
    queue_held: held,
    next_cursor: found.length > limit ? String(page.at(-1)?.["place"]) : null,
  };
};

/** The newest items whose text has the words. */
const foundIn = ({ items }: FakeConversation, search: string): Json => ({
  found: items
    .toReversed()
    .filter((item) => JSON.stringify(item["content"]).toLowerCase().includes(search.toLowerCase()))
    .map((item) => ({
      item_id: item["id"],
      at: item["created_at"],
      text: (item["content"] as readonly { readonly text: string }[])[0]?.text,
    })),
});

const ATTACHMENT = /\/(?:sessions|projects)\/[^/]+\/attachments(?:\/([^/]+))?$/;

/** Takes or gives an attached file. False: the request is about something else. */
export const servesFile = (
  { files }: FakeConversation,
  asked: { readonly target: URL; readonly type: string; readonly content: Buffer },
  response: http.ServerResponse,
): boolean => {
  const [found, id] = ATTACHMENT.exec(asked.target.pathname) ?? [];
  if (found === undefined) return false;
  if (id === undefined) {
    const [made, name] = [randomUUID(), asked.target.searchParams.get("name") ?? ""];
    const { type: media_type, content } = asked;
    files.set(made, { name, media_type, content });
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: made, name, media_type, bytes: content.length, sha256: "" }));
    return true;
  }
  const file = files.get(id);
  response.writeHead(file === undefined ? 404 : 200, { "content-type": file?.media_type ?? "text/plain" });
  response.end(file?.content);
  return true;
};

/** Whether the request is about a conversation. */
export const isOfConversation = (pathname: string): boolean =>
  /\/sessions\/[^/]+\/(?:conversation(?!\/machine)|messages|interrupt|queue|requests|models)(?:\/|$)/.test(
    pathname,
  );

/** @param world whose conversation it serves */
export const makeConversations = (world: { conversation: FakeConversation; sessions: Json[] }) => {
  const streams = new Set<http.ServerResponse>();
  /** Those that asked for the project's news, too. */
  const told = new Set<http.ServerResponse>();
  let reads = 0;
  /** `item` and `state` are kept, with the next number. All else is only sent. */
  const say = (event: string, data: Json) => {
    const { conversation } = world;
    if (event !== "item" && event !== "state") {
      for (const stream of streams) stream.write(frame(event, data));
      return;
    }
    conversation.seq += 1;
    const { seq } = conversation;
    const kept =
      event === "item"
        ? { place: seq, ...data, seq }
        : {
            seq,
            state: conversation.turn,
            usage: conversation.usage,
            queue_held: conversation.held,
            ...data,
          };
    if (event === "item") {
      conversation.items = [...conversation.items.filter(({ id }) => id !== data["id"]), kept];
    } else {
      const { state, usage, queue_held: held } = kept as unknown as Record<string, Json>;
      Object.assign(conversation, { turn: state, usage, held });
    }
    conversation.history.push({ seq, event, data: kept });
    for (const stream of streams) stream.write(frame(event, kept, seq));
  };
  return {
    reads: () => reads,
    readers: () => streams.size,
    cut: () => {
      for (const stream of streams) stream.destroy();
    },
    news: () => {
      for (const stream of told) stream.write(frame("project", {}));
    },
    say,
    answer: (
      request: http.IncomingMessage,
      response: http.ServerResponse,
      { person, body }: { readonly person: string; readonly body: string },
    ) => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://fake");
      const answerJson = (status: number, answer: Json | null) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(answer === null ? undefined : JSON.stringify(answer));
      };
      if (!pathname.includes("/conversation")) {
        const { conversation } = world;
        const fault = request.method === "GET" ? undefined : conversation.faults.shift();
        if (fault === "unavailable") return answerJson(503, { error: "Busy.", code: "busy" });
        const done = steer(world, say, { person, method: request.method ?? "", pathname, body });
        if (fault === "lost") return response.destroy();
        return answerJson(done.status, done.answer);
      }
      if (pathname.endsWith("/search"))
        return answerJson(200, foundIn(world.conversation, searchParams.get("search") ?? ""));
      if (!pathname.endsWith("/events")) {
        reads += 1;
        const { broken } = world.conversation;
        return broken === undefined
          ? answerJson(200, pageOf(world.conversation, searchParams))
          : answerJson(503, { error: broken, code: "broken" });
      }
      const after = Number(request.headers["last-event-id"] ?? searchParams.get("after"));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(frame("open", {}));
      for (const { seq, event, data } of world.conversation.history) {
        if (seq > after) response.write(frame(event, data, seq));
      }
      streams.add(response);
      if (searchParams.get("project") === "1") told.add(response);
      response.on("close", () => {
        streams.delete(response);
        told.delete(response);
      });
    },
  };
};
