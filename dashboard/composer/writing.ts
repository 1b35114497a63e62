/**
 * A reader's text and files for the agent, until they are sent. It uses no document.
 *
 *  C1 Nothing typed is lost. It stays in the storage of the tab until it is sent. A refused message comes back, before
 *     what was typed meanwhile.
 *  C2 A text that the service refused because of a secret is not stored, until the text was empty once.
 */
import { keep, readKept } from "../frame/kept.ts";
import { hasEnded } from "../projects/project.ts";
import { Store } from "../ui/store.ts";
import { Attachments } from "./attachments.ts";
import type { Message } from "../live/outbox.ts";
import { type Chosen, messageOf, type Moment, NOT_CHOSEN, refusalWords } from "./rules.ts";

export interface WritingListener {
  readonly moment: () => Pick<Moment, "status" | "asksInWords">;
  /** What the reader wishes of a restart. */
  readonly isRestoreWanted: () => boolean;
  readonly send: (message: Message) => void;
  /** Tells whether the answer counts. */
  readonly answer: (text: string) => Promise<boolean>;
}

type Returned = Partial<Pick<Message, "attachments" | "model" | "agent" | "effort">> & Pick<Message, "text">;

export class Writing extends Store {
  text = "";
  chosen = NOT_CHOSEN;
  /** Why something was not done. */
  problem = "";
  /** Whether the choice of model and agent is open. */
  isChoosing = false;
  readonly files: Attachments;
  /** The text area, while it is shown. */
  readonly area: { current: HTMLTextAreaElement | null } = { current: null };
  readonly #name: string;
  readonly #listener: WritingListener;
  #isSecret = false;

  /** @param path of the session in the API */
  constructor(path: string, listener: WritingListener) {
    super();
    this.#name = `draft ${path}`;
    this.#listener = listener;
    this.files = new Attachments(path, { changed: () => this.#keep(), told: (problem) => this.say(problem) });
    const { files = [], ...kept } = readKept(this.#name) ?? {};
    this.putBack({ text: "", ...kept, attachments: files });
  }

  get isSendable(): boolean {
    return !this.files.isUnready && (this.text.trim() !== "" || this.files.ready.length > 0);
  }

  readonly focus = (): void => this.area.current?.focus({ preventScroll: true });

  readonly say = (problem: string): void => {
    this.problem = problem;
    this.changed();
  };

  readonly write = (text: string): void => {
    this.text = text;
    this.#keep();
  };

  readonly choose = (choice: Partial<Chosen>): void => {
    this.chosen = { ...this.chosen, ...choice };
    this.#keep();
  };

  readonly openChoices = (isChoosing: boolean): void => {
    this.isChoosing = isChoosing;
    this.changed();
  };

  readonly send = (delivery: Message["delivery"]): void => {
    if (!this.isSendable) return;
    const { text, chosen, files } = this;
    const message = messageOf({ text, chosen, files: files.ready }, delivery, {
      isEnded: hasEnded(this.#listener.moment().status),
      restore: this.#listener.isRestoreWanted(),
    });
    this.problem = "";
    this.chosen = NOT_CHOSEN;
    this.files.set([]);
    this.write("");
    this.#listener.send(message);
    this.focus();
  };

  /** Sends it, or answers the agent. The text of an answer stays until the answer counts (C1). */
  readonly submit = async (): Promise<void> => {
    const text = this.text.trim();
    if (!this.#listener.moment().asksInWords || this.files.ready.length > 0 || text === "") {
      this.send("queue");
      return;
    }
    this.say("");
    if ((await this.#listener.answer(text)) && this.text.trim() === text) this.write("");
    this.focus();
  };

  readonly putBack = ({ text, attachments = [], model = "", agent = "", effort = "" }: Returned): void => {
    if (this.text === "") this.chosen = { model, agent, effort };
    this.text = [text, this.text].filter((words) => words !== "").join("\n\n");
    this.files.set([...attachments, ...this.files.ready]);
  };

  readonly refused = (message: Message, error: { readonly code: string; readonly message: string }): void => {
    if (error.code === "secret_in_message") this.#isSecret = true;
    this.putBack(message);
    this.say(refusalWords(error));
  };

  #keep(): void {
    if (this.text === "") this.#isSecret = false;
    const text = this.#isSecret ? "" : this.text;
    const { chosen } = this;
    const files = this.files.ready;
    const isChosen = Object.values(chosen).some((one) => one !== "");
    const isEmpty = text === "" && !isChosen && files.length === 0;
    keep(this.#name, isEmpty ? null : { text, ...chosen, files });
    this.changed();
  }
}
