/** A session's conversation over plain objects: its pages, and its events from a number on. */
import type * as http from "node:http";

type Json = Readonly<Record<string, unknown>>;

export interface FakeConversation {
  /** The current version of each item. */
  items: Json[];
  turn: Json;
  usage: Json;
  seq: number;
  /** Refuses to be read, in these words. */
  readonly broken?: string;
  /** The versions that a reader can resume from. */
  readonly history: { readonly seq: number; readonly event: string; readonly data: Json }[];
}

const WAITING = new Set(["queued", "sending"]);

const frame = (event: string, data: Json, seq?: number): string =>
  `${seq === undefined ? "" : `id: ${seq}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

const placeOf = (item: Json): number => Number(item["place"]);

const pageOf = ({ items, turn, usage, seq }: FakeConversation, query: URLSearchParams): Json => {
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
    next_cursor: found.length > limit ? String(page.at(-1)?.["place"]) : null,
  };
};

/** @param world whose conversation it serves */
export const makeConversations = (world: { conversation: FakeConversation }) => {
  const streams = new Set<http.ServerResponse>();
  let reads = 0;
  return {
    reads: () => reads,
    readers: () => streams.size,
    cut: () => {
      for (const stream of streams) stream.destroy();
    },
    /** `item` and `state` are kept, with the next number. All else is only sent. */
    say: (event: string, data: Json) => {
      const { conversation } = world;
      if (event !== "item" && event !== "state") {
        for (const stream of streams) stream.write(frame(event, data));
        return;
      }
      conversation.seq += 1;
      const kept = event === "item" ? { place: conversation.seq, ...data, seq: conversation.seq } : data;
      if (event === "item") {
        conversation.items = [...conversation.items.filter(({ id }) => id !== data["id"]), kept];
      } else {
        conversation.turn = data["turn"] as Json;
        conversation.usage = data["usage"] as Json;
      }
      conversation.history.push({ seq: conversation.seq, event, data: kept });
      for (const stream of streams) stream.write(frame(event, kept, conversation.seq));
    },
    answer: (request: http.IncomingMessage, response: http.ServerResponse) => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://fake");
      if (!pathname.endsWith("/events")) {
        reads += 1;
        const { broken } = world.conversation;
        const answer =
          broken === undefined ? pageOf(world.conversation, searchParams) : { error: broken, code: "broken" };
        response.writeHead(broken === undefined ? 200 : 503, { "content-type": "application/json" });
        response.end(JSON.stringify(answer));
        return;
      }
      const after = Number(request.headers["last-event-id"] ?? searchParams.get("after"));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(frame("open", {}));
      for (const { seq, event, data } of world.conversation.history) {
        if (seq > after) response.write(frame(event, data, seq));
      }
      streams.add(response);
      response.on("close", () => streams.delete(response));
    },
  };
};
