/** `platform sessions chat`: follows a conversation and sends what a person types. */
import { randomUUID } from "node:crypto";
import type { Client } from "../client.ts";
import type { Answer, Request } from "../contract.ts";
import { command } from "../command.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Input } from "../input.ts";
import { visible, visibleLines } from "../terminal.ts";
import { sessionId } from "../words.ts";
import { attached } from "./attached.ts";
import { printPast, watchConversation } from "./conversation.ts";
import type { SentEvent } from "./event-stream.ts";

type Conversation = Answer<"GET /v1/projects/:pid/sessions/:sid/conversation">;
type Item = Conversation["items"][number];
type GivenAnswer = Request<"POST /v1/projects/:pid/sessions/:sid/requests/:id/answer">["payload"];

/** A line that attaches a file to the next message. */
const ATTACH = /^\/attach\s+(.+)$/;
/** A second Ctrl-C within this time leaves. */
const LEAVE_WITHIN_MS = 2_000;

const wordsOf = ({ content }: Item): string =>
  content.map((part) => (part.type === "text" ? part.text : `[${part.name}]`)).join("\n");

const requestLines = ({ request }: Item): readonly string[] => {
  if (request === null) return [];
  if (request.kind === "permission")
    return [
      `The agent asks for a permission: ${[request.title, ...request.patterns].join(" ")}`,
      "Answer: once, always, or reject with a reason.",
    ];
  const [question] = request.questions;
  const options = question?.options.map(({ label }) => label).join(", ") ?? "";
  return [
    `The agent asks: ${question?.text ?? request.title}`,
    `Answer${options === "" ? "" : `: ${options}`}.`,
  ];
};

/** An item for a person, once it is finished or waits for an answer. Empty: it is not shown. */
const shown = (item: Item): string => {
  const who = item.author?.name ?? item.role ?? "";
  if (item.kind === "request") return item.status === "running" ? requestLines(item).join("\n") : "";
  if (item.kind === "tool") return `  ${item.tool?.title ?? item.tool?.name ?? ""} (${item.status})`;
  if (item.kind !== "message") return "";
  const why = item.error === null ? "" : ` (${item.error.message})`;
  const state = item.status === "completed" || item.status === "accepted" ? "" : ` [${item.status}${why}]`;
  return `${who}:${state} ${wordsOf(item)}`;
};

const FINISHED = new Set(["accepted", "cancelled", "completed", "failed", "interrupted", "lost"]);

/** The answer that a typed line gives to a request. Null: the line is a message. */
export const answerTo = ({ request }: Item, line: string): GivenAnswer | null => {
  if (request?.kind === "question" && request.questions.length === 1) return { answers: [[line]] };
  if (request?.kind !== "permission") return null;
  const [, choice, reason = ""] = /^(once|always|reject)(?:\s+(.*))?$/is.exec(line) ?? [];
  if (choice === undefined) return null;
  const word = choice.toLowerCase() as "once" | "always" | "reject";
  return { choice: word, ...(reason !== "" && { message: reason }) };
};

/** One chat: what was printed, and which request is open. */
class Chat {
  readonly #client: Client;
  readonly #input: Input;
  /** Ids of files for the next message. */
  #files: readonly string[] = [];
  readonly #params: { readonly pid: string; readonly sid: string };
  readonly #write: (text: string) => void;
  readonly #printed = new Map<string, string>();
  #open: Item | null = null;
  #interruptedAt = -Infinity;

  constructor(
    { client, input }: { readonly client: Client; readonly input: Input },
    params: { readonly pid: string; readonly sid: string },
    write: (text: string) => void,
  ) {
    this.#client = client;
    this.#input = input;
    this.#params = params;
    this.#write = write;
  }

  readonly take = ({ event, data }: SentEvent): void => {
    if (event !== "item") return;
    const item = JSON.parse(data) as Item;
    if (item.kind === "request") {
      if (!FINISHED.has(item.status) && item.answer === null) this.#open = item;
      else if (this.#open?.id === item.id) this.#open = null;
    }
    if (!FINISHED.has(item.status) && item.kind !== "request") return;
    const text = shown(item);
    if (text === "" || this.#printed.get(item.id) === text) return;
    this.#printed.set(item.id, text);
    this.#write(`${visibleLines(text)}\n`);
  };

  /** Sends a line: to the open request if it answers it, else as a message. */
  async say(line: string): Promise<void> {
    if (line.trim() === "") return;
    const params = this.#params;
    const [, path] = ATTACH.exec(line.trim()) ?? [];
    if (path !== undefined) {
      const via = { client: this.#client, input: this.#input };
      this.#files = [...this.#files, ...(await attached(via, params, [path]))];
      this.#write("(The next message has this file.)\n");
      return;
    }
    const payload = this.#open === null ? null : answerTo(this.#open, line.trim());
    if (this.#open !== null && payload !== null) {
      const { id } = this.#open;
      await this.#client.call("POST /v1/projects/:pid/sessions/:sid/requests/:id/answer", {
        params: { ...params, id },
        payload,
      });
      return;
    }
    const files = this.#files;
    const { value } = await this.#client.call("POST /v1/projects/:pid/sessions/:sid/messages", {
      params,
      payload: { id: randomUUID(), text: line, ...(files.length > 0 && { attachments: files }) },
    });
    this.#files = [];
    if (value.message.status === "queued") this.#write("(The message waits for the end of the turn.)\n");
  }

  /** Ends the agent's turn. @returns whether the person wants to leave. */
  async interrupt(nowMs: number): Promise<boolean> {
    if (nowMs - this.#interruptedAt < LEAVE_WITHIN_MS) return true;
    this.#interruptedAt = nowMs;
    const { value } = await this.#client.call("POST /v1/projects/:pid/sessions/:sid/interrupt", {
      params: this.#params,
    });
    this.#write(
      value.interrupted
        ? "(The agent's turn ends.)\n"
        : "(Press Ctrl-C again to leave. The session goes on.)\n",
    );
    return false;
  }
}

export const chat = command({
  name: "sessions chat",
  about: "Talk to the agent of a session",
  takes: ["SESSION"],
  inProject: true,
  notes:
    "Each line is a message, or the answer to the agent's request. `/attach FILE` adds a file to the next message. Ctrl-C ends the agent's turn; pressed twice, it leaves. The session goes on.",
  run: async ({ given, input, write, note, api, project }) => {
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const talk = new Chat({ client: api(), input }, params, write);
    const complain = (error: unknown): void => {
      if (!(error instanceof Failure)) throw error;
      note(visible(error.message));
    };
    const followed = { client: api(), params, print: talk.take };
    const from = await printPast(followed);
    const typed = input.lines({
      line: (text) => talk.say(text).catch(complain),
      interrupt: async () => {
        const leaves = await talk.interrupt(performance.now()).catch(complain);
        return leaves === true;
      },
    });
    await Promise.race([typed, watchConversation(followed, from, note)]);
    // The stream of events has no end of its own.
    process.exit(EXIT.ok);
  },
});
