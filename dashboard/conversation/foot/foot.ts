/** What belongs to the end of a conversation: messages on their way, what the reader writes, and how she steers. It uses no document. */
import {
  applyEarly,
  type Conversation,
  isWaiting,
  plainQuestion,
  textOf,
  waitingMessages,
  waitsWithPlan,
} from "../reading/model.ts";
import type { Reading } from "../reading/stream.ts";
import type { Outbox, Sent } from "../../live/outbox.ts";
import type { Moment } from "../../composer/rules.ts";
import { Writing } from "../../composer/writing.ts";
import { outboxes } from "../../live/sending.ts";
import { isLive } from "../../projects/project.ts";
import { isRestoreWanted } from "../../saved/work.ts";
import type { Item, Session } from "../../wire.d.ts";
import { Steering } from "./steering.ts";

/** What the page knows beside the conversation. */
export interface Around {
  readonly session: Session;
  /** The reader's name. */
  readonly me: string;
}

/** Messages that the agent does not have yet. */
export interface Waiting {
  /** What the agent gets now. */
  readonly next: readonly Item[];
  readonly queue: readonly Item[];
  /** Messages that only this page has, oldest first. */
  readonly sent: readonly Sent[];
  /** Whether what this page has needs to wait for nothing. */
  readonly isNext: boolean;
}

interface Listener {
  readonly changed: () => void;
  /** A message was sent that the agent gets now. */
  readonly sent: () => void;
}

export class Foot {
  readonly outbox: Outbox;
  readonly steering: Steering;
  readonly writing: Writing;
  /** The page is left. Messages on their way go on. */
  readonly end: () => void;
  /** Changed by the page. */
  around: Around;
  readonly #reading: Reading;
  readonly #listener: Listener;

  /** @param path of the session in the API */
  constructor(path: string, reading: Reading, { around, ...listener }: Listener & { around: Around }) {
    const { conversation } = reading;
    const { changed } = listener;
    this.around = around;
    this.#reading = reading;
    this.#listener = listener;
    this.steering = new Steering(path, conversation, {
      changed,
      told: (problem) => this.writing.say(problem),
    });
    this.outbox = outboxes.at(path);
    this.writing = new Writing(path, {
      moment: () => this.moment(),
      isRestoreWanted,
      send: (message) => {
        this.outbox.send(message);
        if (this.waiting().isNext) listener.sent();
      },
      answer: (text) => this.#answer(conversation, text),
    });
    this.end = this.outbox.listen({
      changed,
      taken: (item) => applyEarly(conversation, item),
      refused: (message, error) => this.writing.refused(message, error),
    });
  }

  waiting(): Waiting {
    const { conversation, heard } = this.#reading;
    const { next, queue } = waitingMessages(conversation, isLive(this.around.session.status));
    // Until the conversation is known, it may have them.
    const sent = heard ? this.outbox.sent : [];
    const rests = conversation.turn.state === "idle" && this.outbox.absence === null;
    return { next, queue, sent, isNext: rests && queue.length === 0 };
  }

  moment(): Moment {
    const { conversation, heard } = this.#reading;
    const { status } = this.around.session;
    return {
      status,
      turn: waitsWithPlan(conversation) ? "idle" : conversation.turn.state,
      stopping: this.steering.busy.has("stop"),
      isFirst: heard && !conversation.order.some(({ role }) => role === "agent"),
      asksInWords: isLive(status) && plainQuestion(conversation) !== null,
      model: conversation.order.findLast(({ model }) => model !== null)?.model ?? null,
    };
  }

  /** The text of the reader's last message. */
  readonly lastOwn = (): string | null => {
    const { order } = this.#reading.conversation;
    const last = order.findLast((item) => item.author?.name === this.around.me);
    return last === undefined ? null : textOf(last);
  };

  /** Forgets messages that the conversation has by now. */
  settle(): void {
    this.outbox.settle((id) => this.#reading.conversation.items.has(id));
  }

  /** A message that waits for the service, or could not be sent, becomes the reader's text again. */
  readonly takeBack = (id: string): void => {
    const message = this.outbox.takeBack(id);
    if (message === null) return;
    this.writing.putBack(message);
    this.writing.focus();
  };

  /** Sends the last message again, which the agent did not finish. It restarts a session that has ended. */
  readonly sendAgain = (): void => {
    const { order } = this.#reading.conversation;
    const last = order.findLast(
      (item) => item.kind === "message" && item.role === "user" && !isWaiting(item),
    );
    const text = last === undefined ? "" : textOf(last);
    // The service has the files.
    const attachments = (last?.content ?? []).flatMap((part) =>
      part.type === "file" && part.attachment_id !== null
        ? [{ id: part.attachment_id, name: part.name, media_type: part.media_type, bytes: 0 }]
        : [],
    );
    const isEnded = !isLive(this.around.session.status);
    this.outbox.send({
      text: text.trim() === "" && attachments.length === 0 ? "Try again." : text,
      ...(attachments.length > 0 && { attachments }),
      delivery: "queue",
      ...(isEnded && { restore: isRestoreWanted() }),
    });
    this.#listener.sent();
  };

  /** Answers the agent's question with the reader's words. The reader may be late. */
  async #answer(conversation: Conversation, text: string): Promise<boolean> {
    const id = plainQuestion(conversation);
    if (id === null) return false;
    const counts = await this.steering.answer(id, { answers: [[text]] });
    this.writing.say(this.steering.askedOf(id).problem ?? "");
    return counts;
  }
}
