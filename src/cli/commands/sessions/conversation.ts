/** `platform sessions transcript` and `platform sessions watch`. */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../client.ts";
import type { Answer } from "../../contract.ts";
import { command, type Call } from "../../command.ts";
import { isOpen } from "../../../domain/conversation/growing.ts";
import { askedLines, CommandsAtWork, settledWords, waits, type Item } from "./agent-requests.ts";
import { readEvents, type SentEvent } from "./event-stream.ts";
import { EXIT, Failure } from "../../failure.ts";
import { INTERRUPTED } from "../../input.ts";
import { type Screen, safeLine, safeJson, safeLines } from "../../terminal.ts";
import { parseWord } from "../../words.ts";
import { namedSession } from "./session-argument.ts";
import { Places } from "./talk/places.ts";
import { Talk } from "./talk/talk.ts";

type Conversation = Answer<"GET /v1/projects/:pid/sessions/:sid/conversation">;

export const transcript = command({
  name: "sessions transcript",
  about: "Print the conversation of a session: people, agent and tools",
  takes: ["[SESSION]"],
  inProject: true,
  options: { format: { value: "FORMAT", about: "md for people, json for programs (md)" } },
  notes: "With --json, the format is json. In a sandbox, SESSION defaults to its own session.",
  run: async ({ given, options, json, environment, api, project }) => {
    const format = parseWord(options.format, ["md", "json"], "--format") ?? "md";
    const isJson = json || format === "json";
    const path = `/projects/${await project()}/sessions/${namedSession(given.SESSION, environment)}`;
    const text = await api().text(`${path}/conversation.${isJson ? "json" : "md"}`);
    const printable = isJson ? safeJson(text) : safeLines(text);
    return { json: text, text: printable.replace(/\n$/, ""), raw: text };
  },
});

/** A pause before the next connection, and the longest one. */
const AGAIN_MS = 500;
const AGAIN_MAX_MS = 10_000;
/** How many items of the past are printed at the start. */
const PAST = 200;

const LINE_MAX = 200;

const line = (text: string): string => {
  const [first = ""] = text.split("\n");
  return safeLine(
    first.length > LINE_MAX || first.length < text.length ? `${first.slice(0, LINE_MAX)}…` : first,
  );
};

/** An item as one line, when it is finished or waits for a person. Null before. */
const itemLine = (item: Item): string | null => {
  if (isOpen(item) && item.kind !== "request") return null;
  const text = item.content.map((part) => (part.type === "text" ? part.text : part.name)).join("\n");
  const what =
    item.tool === null ? item.request?.title || text : `${item.tool.name} ${item.tool.title ?? ""}`.trimEnd();
  const who = item.author?.name ?? item.role ?? "-";
  return `${item.created_at} ${line(who)} ${item.kind} ${item.status}: ${line(what)}`;
};

/** What the agent asks, and the command that answers it, below the item's line. */
const requestLines = (item: Item, commands: CommandsAtWork, sid: string): readonly string[] => {
  if (!waits(item)) return [];
  if (item.request?.kind === "plan")
    return [...askedLines(item, []), `Approve: platform sessions approve-plan ${sid}`];
  const answer = item.request?.kind === "permission" ? "--choice once|always|reject" : "--text ANSWER";
  const several = (item.request?.questions.length ?? 0) > 1;
  return [
    ...askedLines(item, commands.commandsFor(item)),
    `Answer: platform sessions answer ${sid} ${item.id} ${several ? "--answers JSON" : answer}`,
  ];
};

/** What `watch` prints in a pipe: each change in a line, and none twice. */
class PrintedEvents {
  readonly #sid: string;
  readonly #commands = new CommandsAtWork();
  readonly #places = new Places();
  /** By the item's id. */
  readonly #printed = new Map<string, string>();

  constructor(sid: string) {
    this.#sid = sid;
  }

  take({ event, data }: SentEvent): string | null {
    if (event === "item") return this.#item(JSON.parse(data) as Item);
    if (event !== "state") return null;
    const { state } = JSON.parse(data) as { readonly state: Conversation["state"] };
    return `${state.since} - state ${state.state}`;
  }

  #item(item: Item): string | null {
    this.#commands.take(item);
    const first = itemLine(item);
    if (first === null) return null;
    const note = this.#places.take(item);
    const request = requestLines(item, this.#commands, this.#sid).map((text) => `  ${safeLines(text)}`);
    const text = [first, ...request].join("\n");
    if (this.#printed.get(item.id) === text) return note;
    this.#printed.set(item.id, text);
    return text;
  }
}

interface Watched {
  readonly client: Client;
  readonly params: { readonly pid: string; readonly sid: string };
  readonly print: (event: SentEvent) => void;
}

/** Prints the newest items and the state, as events. @returns the number from which the events continue. */
export const printPast = async ({ client, params, print }: Watched): Promise<string> => {
  const { value } = await client.call("GET /v1/projects/:pid/sessions/:sid/conversation", {
    params,
    query: { limit: PAST },
  });
  for (const item of value.items.toReversed())
    print({ id: String(item.seq), event: "item", data: JSON.stringify(item) });
  const { seq, state, queue_held, usage } = value;
  print({ id: String(seq), event: "state", data: JSON.stringify({ seq, state, queue_held, usage }) });
  return String(seq);
};

/** The event with the whole text of a finished item, of which an event has the beginning. */
const whole = async ({ client, params }: Pick<Watched, "client" | "params">, event: SentEvent) => {
  if (event.event !== "item") return event;
  const item = JSON.parse(event.data) as Item;
  const at = item.content.findLastIndex((part) => part.type === "text");
  if (!item.truncated || isOpen(item) || at < 0) return event;
  const { value: text } = await client.call("GET /v1/projects/:pid/sessions/:sid/items/:id/text", {
    params: { ...params, id: item.id },
  });
  const content = item.content.with(at, { type: "text", text });
  return { ...event, data: JSON.stringify({ ...item, content, truncated: item.tool !== null }) };
};

/**
 * Follows until the connection breaks.
 *
 * @returns the last event's id, or null if the service no longer has the following ones.
 */
const followOnce = async ({ client, params, print }: Watched, from: string): Promise<string | null> => {
  const path = `/projects/${params.pid}/sessions/${params.sid}/conversation/events`;
  let place = from;
  const stream = await client.stream(path, { accept: "text/event-stream", "last-event-id": from });
  try {
    for await (const event of readEvents(stream)) {
      if (event.event !== "open") print(await whole({ client, params }, event));
      if (event.event === "reset") return null;
      place = event.id ?? place;
    }
  } catch {
    // The connection broke off. The next one continues after the last event.
  }
  return place;
};

/** One connection. A refusal is final: the token ended, or the session was deleted. */
const onceMore = async (watcher: Watched, place: string | null): Promise<string | null> => {
  try {
    return place === null ? await printPast(watcher) : await followOnce(watcher, place);
  } catch (error) {
    if (error instanceof Failure && error.exit === EXIT.tryAgain) return place;
    throw error;
  }
};

/**
 * Follows a conversation for ever, over any number of connections. It ends with a refusal.
 *
 * @param from the number from which the events continue
 */
export const watchConversation = async (
  watcher: Watched,
  from: string,
  note: (line: string) => void,
): Promise<never> => {
  let place: string | null = from;
  for (let waitMs = AGAIN_MS; ;) {
    const before = place;
    // oxlint-disable-next-line no-await-in-loop -- one connection follows the other
    place = await onceMore(watcher, before);
    if (before === null && place !== null) continue;
    waitMs = place === before ? Math.min(waitMs * 2, AGAIN_MAX_MS) : AGAIN_MS;
    // After a reset the newest page is read again. That is not a broken connection.
    if (place !== null) note("The connection is closed. Connecting again.");
    // oxlint-disable-next-line no-await-in-loop -- the next connection waits
    await pause(waitMs);
  }
};

/** What a person reads who stops listening. */
export const STOPPED = "Stopped listening. The session goes on.";

/** Takes events for a screen. A request has the command below it that answers it. */
const talkOn = (talk: Talk, sid: string): Watched["print"] => {
  const commands = new CommandsAtWork();
  const requests = new Set<string>();
  return (event) => {
    talk.take(event);
    if (event.event !== "item") return;
    const item = JSON.parse(event.data) as Item;
    commands.take(item);
    const lines = requestLines(item, commands, sid);
    if (lines.length > 0 && !requests.has(item.id)) talk.ask(lines);
    if (lines.length === 0 && requests.delete(item.id)) talk.say(safeLine(settledWords(item)));
    if (lines.length > 0) requests.add(item.id);
  };
};

/** Shows the conversation on a screen, until the person interrupts it. */
const followOn = async (
  screen: Screen,
  { client, params }: Pick<Watched, "client" | "params">,
): Promise<never> => {
  const talk = new Talk(screen);
  const stop = (): never => {
    talk.say(STOPPED);
    process.exit(INTERRUPTED);
  };
  process.once("SIGINT", stop);
  try {
    const watcher = { client, params, print: talkOn(talk, params.sid) };
    return await watchConversation(watcher, await printPast(watcher), (words) => talk.say(safeLine(words)));
  } finally {
    process.off("SIGINT", stop);
    talk.pause();
  }
};

/** Prints the conversation as it goes on, until the person interrupts it. */
export const follow = async (
  {
    json,
    screen,
    write,
    note,
    api,
  }: Pick<Call<unknown, unknown>, "json" | "screen" | "write" | "note" | "api">,
  params: Watched["params"],
): Promise<never> => {
  if (screen !== null) return await followOn(screen, { client: api(), params });
  const events = new PrintedEvents(params.sid);
  const print = (event: SentEvent): void => {
    if (json) {
      const { id, data } = event;
      write(`${safeJson(JSON.stringify({ event: event.event, id, data: JSON.parse(data) as unknown }))}\n`);
      return;
    }
    const text = events.take(event);
    if (text !== null) write(`${text}\n`);
  };
  const watcher = { client: api(), params, print };
  return await watchConversation(watcher, await printPast(watcher), note);
};

export const watch = command({
  name: "sessions watch",
  about: "Follow the conversation of a session until interrupted",
  takes: ["[SESSION]"],
  inProject: true,
  notes:
    'The command prints the newest 200 items, then each change. At a terminal it shows the conversation as `platform sessions chat` does, and Ctrl-C stops listening. Below a request of the agent it prints the command that answers it. It connects again by itself. With --json, each line is an event: {"event": "item", "state", "delta" or "reset", "id", "data"}. In a sandbox, SESSION defaults to its own session.',
  run: async (call) => {
    const sid = namedSession(call.given.SESSION, call.environment);
    return await follow(call, { pid: await call.project(), sid });
  },
});
