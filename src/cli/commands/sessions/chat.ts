/** `platform sessions chat`: follows a conversation and sends what a person types. */
import { randomUUID } from "node:crypto";
import type { Client } from "../../client.ts";
import { command } from "../../command.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { Input } from "../../input.ts";
import { visible, visibleLines } from "../../terminal.ts";
import { sessionId } from "../../words.ts";
import {
  askedLines,
  CommandsAtWork,
  howToAnswer,
  isOpen,
  permissionAnswer,
  planAnswer,
  questionAnswer,
  waits,
  type GivenAnswer,
  type Item,
} from "./agent-requests.ts";
import { attached } from "./attached.ts";
import { printPast, watchConversation } from "./conversation.ts";
import type { SentEvent } from "./event-stream.ts";

/** A line that attaches a file to the next message. */
const ATTACH = /^\/attach\s+(.+)$/;
/** A second Ctrl-C within this time leaves. */
const LEAVE_WITHIN_MS = 2_000;

const wordsOf = ({ content }: Item): string =>
  content.map((part) => (part.type === "text" ? part.text : `[${part.name}]`)).join("\n");

/** A finished item for a person. Empty: it is not shown. */
const shown = (item: Item): string => {
  const who = item.author?.name ?? item.role ?? "";
  if (item.kind === "tool") return `  ${item.tool?.title ?? item.tool?.name ?? ""} (${item.status})`;
  // A note of the service or a person: a call waits for an approval, or was decided.
  if (item.kind === "note" && item.author?.kind !== "agent") return `(${wordsOf(item)})`;
  if (item.kind !== "message") return "";
  const why = item.error === null ? "" : ` (${item.error.message})`;
  const state = item.status === "completed" || item.status === "accepted" ? "" : ` [${item.status}${why}]`;
  return `${who}:${state} ${wordsOf(item)}`;
};

/**
 * One chat.
 *
 *  C1 A request is shown before a line can answer it. Of several open requests only the first is shown, and lines
 *     answer that one.
 *  C2 While a request is shown, no line is sent as a message, except to ask for another plan.
 */
class Chat {
  readonly #client: Client;
  readonly #input: Input;
  /** Ids of files for the next message. */
  #files: readonly string[] = [];
  readonly #params: { readonly pid: string; readonly sid: string };
  readonly #write: (text: string) => void;
  readonly #printed = new Map<string, string>();
  readonly #commands = new CommandsAtWork();
  /** Requests that wait, in the order of their arrival. */
  #open: readonly Item[] = [];
  /** The answers to the first questions of the first request. */
  #answers: readonly (readonly string[])[] = [];
  /** Ids of the requests that this chat answers: their next version may come before the response, or after the next line. */
  readonly #answered = new Set<string>();
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
    this.#commands.take(item);
    if (item.kind === "request") this.#hear(item);
    if (isOpen(item) || item.kind === "request") return;
    const text = shown(item);
    if (text === "" || this.#printed.get(item.id) === text) return;
    this.#printed.set(item.id, text);
    this.#print(text);
  };

  /** Sends a line: to the open request if there is one, else as a message. */
  async say(line: string): Promise<void> {
    const words = line.trim();
    if (words === "") return;
    const [, path] = ATTACH.exec(words) ?? [];
    const [request] = this.#open;
    if (path !== undefined) {
      const via = { client: this.#client, input: this.#input, option: "/attach" };
      this.#files = [...this.#files, ...(await attached(via, this.#params, [path]))];
      this.#write("(The next message has this file.)\n");
    } else if (request === undefined) await this.#send(line);
    else if (request.request?.kind === "plan" && planAnswer(words) === null) await this.#send(line);
    else await this.#answer(request, words);
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

  #print(text: string): void {
    this.#write(`${visibleLines(text)}\n`);
  }

  #hear(item: Item): void {
    const isKnown = this.#open.some(({ id }) => id === item.id);
    if (waits(item)) {
      if (isKnown || this.#answered.has(item.id)) return;
      this.#open = [...this.#open, item];
      if (this.#open.length === 1) this.#ask();
    } else if (isKnown) {
      const by = item.answer?.by?.name;
      if (!this.#answered.has(item.id))
        this.#print(by === undefined ? "(The agent no longer asks.)" : `(${by} answered.)`);
      this.#settle(item.id);
    }
  }

  /** Shows the first request, or its next question, and the words that answer it. */
  #ask(): void {
    const [request] = this.#open;
    if (request === undefined) return;
    const at = this.#answers.length;
    const lines = askedLines(request, this.#commands.of(request), at);
    this.#print([...lines, howToAnswer(request, at)].join("\n"));
  }

  #settle(id: string): void {
    const [first] = this.#open;
    this.#open = this.#open.filter((request) => request.id !== id);
    if (first?.id !== id) return;
    this.#answers = [];
    this.#ask();
  }

  async #answer(item: Item, words: string): Promise<void> {
    const payload = this.#read(item, words);
    if (payload === "more") return;
    if (payload === null) {
      this.#write(
        `(Not sent, because the agent waits for an answer. ${howToAnswer(item, this.#answers.length)} ` +
          "`platform sessions send` sends a message meanwhile.)\n",
      );
      return;
    }
    this.#answered.add(item.id);
    try {
      await this.#client.call("POST /v1/projects/:pid/sessions/:sid/requests/:id/answer", {
        params: { ...this.#params, id: item.id },
        payload,
      });
    } catch (error) {
      this.#answered.delete(item.id);
      throw error;
    }
    this.#settle(item.id);
  }

  /** What a line says to a request. Null: nothing. `more`: it answers a question, and the next one was shown. */
  #read({ request }: Item, words: string): GivenAnswer | "more" | null {
    if (request?.kind === "plan") return planAnswer(words);
    if (request?.kind === "permission") return permissionAnswer(words);
    const question = request?.questions[this.#answers.length];
    const answer = question === undefined ? [words] : questionAnswer(question, words);
    if (answer === null) return null;
    const answers = [...this.#answers, answer];
    if (answers.length >= (request?.questions.length ?? 0)) return { answers };
    this.#answers = answers;
    this.#ask();
    return "more";
  }

  async #send(text: string): Promise<void> {
    const files = this.#files;
    const { value } = await this.#client.call("POST /v1/projects/:pid/sessions/:sid/messages", {
      params: this.#params,
      payload: {
        id: randomUUID(),
        text,
        restore_saved: true,
        ...(files.length > 0 && { attachments: files }),
      },
    });
    this.#files = [];
    if (value.message.status === "queued") this.#write("(The message waits for the end of the turn.)\n");
  }
}

export const chat = command({
  name: "sessions chat",
  about: "Talk to the agent of a session",
  takes: ["SESSION"],
  inProject: true,
  notes:
    "Each line is a message. When the agent asks, the chat shows the request, and the next line is the answer. To a permission: y (or yes, once), always, or n (or no, reject), which a reason may follow. To a plan: y approves it, and any other line asks for another plan. To a question: the number or the text of an option, or `/answer TEXT` in your own words. A line that is no answer is not sent. `/attach FILE` adds a file to the next message. Ctrl-C ends the agent's turn; pressed twice, it leaves. The session goes on.",
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
