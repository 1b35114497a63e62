/**
 * A conversation on a screen, as it goes on. It shows what the page shows, one item after the other.
 *
 *  T1 Written text stays, and nothing is written twice: neither after a reset, nor when a connection begins again, nor when an item
 *     gets another place. Then a line says where it belongs.
 *  T2 The text of one message grows at a time. Items that end meanwhile follow it. Words that a person must know are said immediately, and the text
 *     goes on below it.
 *  T3 A version of an item with a lower `seq` than the known one changes nothing. An event with the beginning of a long text takes
 *     no known text away.
 */
import { duration } from "../../../../domain/duration.ts";
import { appendText, isOpen, contentText } from "../../../../domain/conversation/growing.ts";
import { type Screen, safeLine, safeLines } from "../../../terminal.ts";
import type { Item } from "../agent-requests.ts";
import type { SentEvent } from "../event-stream.ts";
import { Flow, paint } from "./flow.ts";
import { MarkdownWriter } from "./markdown.ts";
import { Places } from "./places.ts";
import { toolEnd, toolReason, toolWords } from "./tool-line.ts";

/** Statuses that need no word. */
const USUAL: ReadonlySet<string> = new Set(["accepted", "completed", "running"]);

interface Growing {
  readonly id: string;
  readonly writer: MarkdownWriter;
  /** The text that the writer has. */
  text: string;
}

interface Delta {
  readonly item_id: string;
  readonly offset: number;
  readonly text: string;
}

/** An agent's answer, whose text grows. */
const isAnswer = ({ kind, role }: Item): boolean => kind === "message" && role === "agent";

/** Items that stand below each other without an empty line. */
const itemKind = ({ kind }: Item): string => (kind === "tool" || kind === "thought" ? "work" : kind);

/** Where a conversation is shown: a screen, or a pipe (plain-talk.ts). */
export interface Display {
  /** Takes an event of the conversation. */
  readonly take: (event: SentEvent) => void;
  /** Says something immediately. The text must be safe for a terminal. */
  readonly say: (text: string) => void;
  /** Shows a request, which a person must see. */
  readonly ask: (lines: readonly string[]) => void;
  /** Whether the cursor stands within a row. */
  readonly isWithin: boolean;
  /** Goes to a new row. @param typed how many cells before the cursor are somebody's typing, which is shown again later */
  readonly pause: (typed?: number) => void;
  /** Somebody typed a line, which stands in the row above. @param id of the message that is that line */
  readonly typed: (id?: string) => void;
}

export class Talk implements Display {
  readonly #screen: Screen;
  /** The newest versions of items that have not ended, with the text that has come since. */
  readonly #open = new Map<string, Item>();
  /** Ids of what was written to its end. */
  readonly #done = new Set<string>();
  readonly #places = new Places();
  #growing: Growing | null = null;
  /** What ended while a text grew. */
  #waiting: readonly Item[] = [];
  /** The tool whose line has no end yet. */
  #tool: { readonly id: string; readonly words: string } | null = null;
  /** Who said the last thing. */
  #speaker = "";
  /** The last written part. "": nothing, or a name. */
  #last = "";

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  take({ event, data }: SentEvent): void {
    if (event === "item") this.#take(JSON.parse(data) as Item);
    if (event === "delta") this.#grow(JSON.parse(data) as Delta);
  }

  say(text: string): void {
    this.#begin("note");
    this.#screen.write(`${text}\n`);
  }

  ask(lines: readonly string[]): void {
    const [first = "", ...others] = lines.map((line) => safeLines(line));
    this.say([paint(this.#screen, ["bold", "yellow"], first), ...others].join("\n"));
  }

  get isWithin(): boolean {
    return this.#tool !== null || this.#growing?.writer.isWithin === true;
  }

  pause(typed = 0): void {
    if (typed > 0 && this.isWithin) this.#screen.write(`\u001b[${typed}D\u001b[K`);
    if (this.#tool !== null) this.#screen.write("\n");
    this.#tool = null;
    this.#growing?.writer.pause();
  }

  typed(id?: string): void {
    this.#tool = null;
    this.#growing?.writer.moved();
    this.#last = "typed";
    if (id === undefined) return;
    this.#done.add(id);
    this.#speaker = "";
  }

  #take(item: Item): void {
    const former = this.#open.get(item.id);
    if (item.kind === "request" || (former?.seq ?? -1) > item.seq) return;
    if (this.#done.has(item.id)) return this.#finish(item);
    const keeps =
      item.truncated &&
      isOpen(item) &&
      former !== undefined &&
      contentText(former).startsWith(contentText(item));
    const version = keeps ? { ...item, content: former.content } : item;
    if (isOpen(version)) this.#open.set(item.id, version);
    else this.#open.delete(item.id);
    if (isAnswer(version) && (isOpen(version) || this.#growing?.id === item.id)) this.#answer(version);
    else if (!isOpen(version)) this.#finish(version);
    else if (version.kind === "tool" && version.status === "running") this.#works(version);
  }

  #grow({ item_id: id, offset, text }: Delta): void {
    const item = this.#open.get(id);
    const content = item === undefined ? null : appendText(item.content, { offset, text });
    if (item === undefined || content === null) return;
    this.#open.set(id, { ...item, content });
    if (isAnswer(item)) this.#answer({ ...item, content });
  }

  /** An answer has a longer text, or has ended. */
  #answer(item: Item): void {
    const text = contentText(item);
    if (this.#growing === null && text !== "") this.#start(item);
    const growing = this.#growing;
    if (growing?.id !== item.id) return;
    if (text.startsWith(growing.text)) {
      if (text !== growing.text && this.#last !== "message") this.#begin("message");
      growing.writer.add(text.slice(growing.text.length));
      growing.text = text;
    } else if (!isOpen(item)) this.#again(growing, text);
    if (isOpen(item)) return;
    growing.writer.end();
    this.#growing = null;
    this.#remark(item);
    this.#done.add(item.id);
    this.#places.take(item);
    const [waiting, open] = [this.#waiting, [...this.#open.values()]];
    this.#waiting = [];
    for (const one of waiting) this.#finish(one);
    const next = open.find((one) => isAnswer(one) && contentText(one) !== "");
    if (next !== undefined) this.#answer(next);
  }

  #start(item: Item): void {
    this.#names(item);
    this.#begin("message");
    this.#growing = { id: item.id, writer: new MarkdownWriter(this.#screen), text: "" };
  }

  /** The runtime has put another text in the place of the one that grew. */
  #again(growing: Growing, text: string): void {
    if (growing.text.startsWith(text)) return;
    growing.writer.end();
    growing.writer.pause();
    this.#screen.write("\n");
    growing.writer.add(text);
  }

  /** An item has ended of which nothing was written but the beginning of its line, or was written and may have moved. */
  #finish(item: Item): void {
    if (this.#growing !== null) {
      this.#waiting = [...this.#waiting.filter(({ id }) => id !== item.id), item];
      return;
    }
    const note = this.#places.take(item);
    if (note !== null) this.say(paint(this.#screen, ["dim"], note));
    if (this.#done.has(item.id)) return;
    this.#done.add(item.id);
    if (item.kind === "tool") this.#worked(item);
    else if (item.kind === "thought")
      this.#line(item, paint(this.#screen, ["dim"], `Thought${this.#took(item)}`));
    else if (item.kind === "note" && item.author?.kind !== "agent")
      this.say(paint(this.#screen, ["dim"], `(${safeLines(contentText(item))})`));
    else if (item.kind === "message") this.#message(item);
  }

  #message(item: Item): void {
    const files = item.content.flatMap((part) => (part.type === "file" ? [`[${part.name}]`] : []));
    const text = [contentText(item), ...files].filter((one) => one !== "").join("\n");
    if (text === "" && USUAL.has(item.status) && item.error === null) return;
    this.#names(item);
    this.#begin("message");
    const writer = new MarkdownWriter(this.#screen);
    writer.add(text);
    writer.end();
    this.#remark(item);
  }

  /** The unusual about a message. */
  #remark({ status, error }: Item): void {
    const words = [USUAL.has(status) ? "" : `[${status}]`, error?.message ?? ""].filter((one) => one !== "");
    if (words.length > 0) this.#screen.write(`${paint(this.#screen, ["red"], safeLine(words.join(" ")))}\n`);
  }

  #took({ created_at: from, completed_at: to }: Item): string {
    return to === null ? "" : ` for ${duration(Date.parse(to) - Date.parse(from))}`;
  }

  /** A tool works: its line begins, if no text grows. */
  #works(item: Item): void {
    const words = toolWords(item, this.#screen);
    if (this.#growing !== null || this.#tool?.id === item.id || item.tool?.kind !== "execute") return;
    this.#names(item);
    this.#begin("work");
    this.#screen.write(`${this.#indent(item)}${words}`);
    this.#tool = { id: item.id, words };
  }

  #worked(item: Item): void {
    const words = toolWords(item, this.#screen);
    const end = toolEnd(item, this.#screen);
    if (this.#tool?.id === item.id && this.#tool.words === words) {
      this.#tool = null;
      this.#screen.write(`${end}\n`);
    } else this.#line(item, `${words}${end}`);
    const reason = toolReason(item);
    if (reason === "") return;
    const flow = new Flow(this.#screen);
    const hang = `${this.#indent(item)}  `;
    flow.begin({ text: hang, style: [] }, hang);
    flow.words([{ text: reason, style: ["red"] }]);
    flow.end();
  }

  /** @param text safe for a terminal */
  #line(item: Item, text: string): void {
    this.#names(item);
    this.#begin(itemKind(item));
    this.#screen.write(`${this.#indent(item)}${text}\n`);
  }

  #indent({ parent_id: parent }: Item): string {
    return parent === null ? "  " : "    ";
  }

  /** Says who speaks, if it is another one than before. */
  #names({ author, role, kind, model }: Item): void {
    const name = author?.name ?? (role === "user" && kind === "message" ? "Unknown author" : "Agent");
    if (name === this.#speaker) return;
    this.#begin("name");
    this.#speaker = name;
    this.#last = "";
    const by = model === null || role === "user" ? "" : paint(this.#screen, ["dim"], `  ${safeLine(model)}`);
    this.#screen.write(`${paint(this.#screen, ["bold"], safeLine(name))}${by}\n`);
  }

  /** Goes to a new row, with an empty one before what is of another kind. */
  #begin(kind: string): void {
    this.pause();
    if (this.#last !== "" && (this.#last !== "work" || kind !== "work")) this.#screen.write("\n");
    this.#last = kind;
  }
}
