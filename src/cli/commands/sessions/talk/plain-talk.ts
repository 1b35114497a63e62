/** A conversation in a pipe or a file: each item once it has ended, as text. */
import { isOpen } from "../../../../domain/conversation/growing.ts";
import { safeLines } from "../../../terminal.ts";
import type { Item } from "../agent-requests.ts";
import type { SentEvent } from "../event-stream.ts";
import { Places } from "./places.ts";
import type { Display } from "./talk.ts";

const itemText = ({ content }: Item): string =>
  content.map((part) => (part.type === "text" ? part.text : `[${part.name}]`)).join("\n");

/** A finished item for a person. Empty: it is not shown. */
const itemLine = (item: Item): string => {
  const who = item.author?.name ?? item.role ?? "";
  if (item.kind === "tool") return `  ${item.tool?.title ?? item.tool?.name ?? ""} (${item.status})`;
  // A note of the service or a person: a call waits for an approval, or was decided.
  if (item.kind === "note" && item.author?.kind !== "agent") return `(${itemText(item)})`;
  if (item.kind !== "message") return "";
  const why = item.error === null ? "" : ` (${item.error.message})`;
  const state = item.status === "completed" || item.status === "accepted" ? "" : ` [${item.status}${why}]`;
  return `${who}:${state} ${itemText(item)}`;
};

export class PlainTalk implements Display {
  readonly #write: (text: string) => void;
  readonly #printed = new Map<string, string>();
  readonly #places = new Places();

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  readonly isWithin = false;

  take({ event, data }: SentEvent): void {
    if (event !== "item") return;
    const item = JSON.parse(data) as Item;
    if (isOpen(item) || item.kind === "request") return;
    const text = itemLine(item);
    if (text === "") return;
    const note = this.#places.take(item);
    if (this.#printed.get(item.id) === text) {
      if (note !== null) this.say(note);
      return;
    }
    this.#printed.set(item.id, text);
    this.say(safeLines(text));
  }

  say(text: string): void {
    this.#write(`${text}\n`);
  }

  ask(lines: readonly string[]): void {
    this.say(safeLines(lines.join("\n")));
  }

  /** Every line ends immediately. */
  pause(): void {}

  /** A line that comes from a pipe is unseen, so it is shown as all messages are. */
  typed(): void {}
}
