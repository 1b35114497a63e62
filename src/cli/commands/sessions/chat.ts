/** `platform sessions chat`: follows a conversation and sends what a person types. */
import type { Client } from "../../client.ts";
import { command } from "../../command.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { Input } from "../../input.ts";
import { safeLine, cellWidth } from "../../terminal.ts";
import { sessionId } from "../../words.ts";
import {
  askedLines,
  CommandsAtWork,
  howToAnswer,
  permissionAnswer,
  planAnswer,
  questionAnswer,
  settledWords,
  waits,
  type GivenAnswer,
  type Item,
} from "./agent-requests.ts";
import { sendAttachments } from "./attached.ts";
import { printPast, STOPPED, watchConversation } from "./conversation.ts";
import type { SentEvent } from "./event-stream.ts";
import { PlainTalk } from "./talk/plain-talk.ts";
import { type Display, Talk } from "./talk/talk.ts";

/** A line that attaches a file to the next message. */
const ATTACH = /^\/attach\s+(.+)$/;
/** A second Ctrl-C within this time leaves. */
const LEAVE_WITHIN_MS = 2_000;

/**
 * One chat.
 *
 *  C1 A request is shown before a line can answer it. Of several open requests only the first is shown, and lines
 *     answer that one.
 *  C2 While a request is shown, no line is sent as a message, except to ask for another plan.
 *  C3 While a person types a line at a terminal, nothing is written there. Later news follow once her line was sent.
 */
export class Chat {
  readonly #client: Client;
  readonly #input: Input;
  /** Ids of files for the next message. */
  #files: readonly string[] = [];
  readonly #params: { readonly pid: string; readonly sid: string };
  readonly #shown: Display;
  readonly #commands = new CommandsAtWork();
  /** Requests that wait, in the order of their arrival. */
  #open: readonly Item[] = [];
  /** The answers to the first questions of the first request. */
  #answers: readonly (readonly string[])[] = [];
  /** Ids of the requests that this chat answers: their next version may come before the response, or after the next line. */
  readonly #answered = new Set<string>();
  #interruptedAt = -Infinity;
  /** Whether a person has typed the beginning of a line. */
  #isTyping = false;
  /** Lines that are entered, and not sent. */
  #entered = 0;
  /** What happened meanwhile. */
  readonly #held: SentEvent[] = [];

  constructor(
    { client, input }: { readonly client: Client; readonly input: Input },
    params: { readonly pid: string; readonly sid: string },
    display: Display,
  ) {
    this.#client = client;
    this.#input = input;
    this.#params = params;
    this.#shown = display;
  }

  readonly take = (event: SentEvent): void => {
    if (this.#isTyping || this.#entered > 0) this.#held.push(event);
    else this.#show(event);
  };

  /**
   * A key was pressed at a terminal.
   *
   * @param line what is typed so far @param isEntered the line is entered
   * @returns whether the line must be shown again, in a new row
   */
  typing(line: string, isEntered: boolean): boolean {
    const begins = line !== "" && !this.#isTyping;
    this.#isTyping = line !== "" && !isEntered;
    if (isEntered) this.#entered += 1;
    this.#release();
    if (!begins || !this.#shown.isWithin) return false;
    this.#shown.pause(cellWidth(line));
    return true;
  }

  /** A line. */
  async hear(line: string): Promise<void> {
    this.#shown.typed();
    try {
      await this.#say(line);
    } finally {
      this.#entered = Math.max(0, this.#entered - 1);
      this.#release();
    }
  }

  /** Sends a line: to the open request if there is one, else as a message. */
  async #say(line: string): Promise<void> {
    const words = line.trim();
    if (words === "") return;
    const [, path] = ATTACH.exec(words) ?? [];
    const [request] = this.#open;
    if (path !== undefined) {
      const via = { client: this.#client, input: this.#input, option: "/attach" };
      this.#files = [...this.#files, ...(await sendAttachments(via, this.#params, [path]))];
      this.#shown.say("(The next message has this file.)");
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
    this.#shown.say(
      value.interrupted ? "(The agent's turn ends.)" : "(Press Ctrl-C again to leave. The session goes on.)",
    );
    return false;
  }

  #show(event: SentEvent): void {
    if (event.event === "item") {
      const item = JSON.parse(event.data) as Item;
      this.#commands.take(item);
      if (item.kind === "request") this.#hear(item);
    }
    this.#shown.take(event);
  }

  #release(): void {
    if (this.#isTyping || this.#entered > 0) return;
    for (const event of this.#held.splice(0)) this.#show(event);
  }

  #hear(item: Item): void {
    const isKnown = this.#open.some(({ id }) => id === item.id);
    if (waits(item)) {
      if (isKnown || this.#answered.has(item.id)) return;
      this.#open = [...this.#open, item];
      if (this.#open.length === 1) this.#ask();
    } else if (isKnown) {
      if (!this.#answered.has(item.id)) this.#shown.say(safeLine(settledWords(item)));
      this.#settle(item.id);
    }
  }

  /** Shows the first request, or its next question, and the words that answer it. */
  #ask(): void {
    const [request] = this.#open;
    if (request === undefined) return;
    const at = this.#answers.length;
    const lines = askedLines(request, this.#commands.commandsFor(request), at);
    this.#shown.ask([...lines, howToAnswer(request, at)]);
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
      this.#shown.say(
        `(Not sent, because the agent waits for an answer. ${howToAnswer(item, this.#answers.length)} ` +
          "`platform sessions send` sends a message meanwhile.)",
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

  /** What a line says to a request, or null if it says nothing. `more` means that it answers a question, and that the next one was shown. */
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
    const id = crypto.randomUUID();
    this.#shown.typed(id);
    const { value } = await this.#client.call("POST /v1/projects/:pid/sessions/:sid/messages", {
      params: this.#params,
      payload: {
        id,
        text,
        restore_saved: true,
        ...(files.length > 0 && { attachments: files }),
      },
    });
    this.#files = [];
    if (value.message.status === "queued") this.#shown.say("(The message waits for the end of the turn.)");
  }
}

export const chat = command({
  name: "sessions chat",
  about: "Talk to the agent of a session",
  example: 'sessions chat "Fix the failing test"',
  takes: ["SESSION"],
  inProject: true,
  notes:
    "Each line is a message. When the agent asks, the chat shows the request, and the next line is the answer. To a permission: y (or yes, once), always, or n (or no, reject), which a reason may follow. To a plan: y approves it, and any other line asks for another plan. To a question: the number or the text of an option, or `/answer TEXT` in your own words. A line that is no answer is not sent. `/attach FILE` adds a file to the next message. Ctrl-C ends the agent's turn; pressed twice, it leaves. The session goes on. At a terminal, the answer is shown as it grows, and what happens while you type follows once your line was sent.",
  run: async ({ given, input, screen, write, note, api, project }) => {
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const display = screen === null ? new PlainTalk(write) : new Talk(screen);
    const talk = new Chat({ client: api(), input }, params, display);
    const tell = screen === null ? note : (line: string) => display.say(safeLine(line));
    const complain = (error: unknown): void => {
      if (!(error instanceof Failure)) throw error;
      tell(error.message);
    };
    const watcher = { client: api(), params, print: talk.take };
    const from = await printPast(watcher);
    const typing = input.lines({
      line: (text) => talk.hear(text).catch(complain),
      interrupt: async () => {
        const leaves = await talk.interrupt(performance.now()).catch(complain);
        if (leaves === true && screen !== null) display.say(STOPPED);
        return leaves === true;
      },
      ...(screen !== null && { typing: (line, isEntered) => talk.typing(line, isEntered) }),
    });
    await Promise.race([typing, watchConversation(watcher, from, tell)]);
    // The stream of events never ends by itself.
    process.exit(EXIT.ok);
  },
});
