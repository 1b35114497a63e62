/** What the service's people say to scripted agents, and the agents' answers, which a test chooses. */
import * as Effect from "effect/Effect";
import type {
  AnswerOrder,
  MessageHandedOver,
  OutgoingMessage,
  RuntimeOffers,
} from "../../../../src/domain/conversation/steering.ts";
import { NoConversation, type DaemonClient } from "../../../../src/sandbox/daemon.ts";

type Steering = Pick<DaemonClient["Service"], "hand" | "attach" | "interrupt" | "answer" | "models">;

/** A runtime that takes no messages, e.g. `plain`. */
export const unsteered: Steering = {
  hand: () => Effect.fail(new NoConversation()),
  attach: () => Effect.fail(new NoConversation()),
  interrupt: () => Effect.fail(new NoConversation()),
  answer: () => Effect.fail(new NoConversation()),
  models: () => Effect.fail(new NoConversation()),
};

export class ScriptedSteering {
  /** Messages that were handed over, oldest first. A repeated one appears twice. */
  readonly handed: OutgoingMessage[] = [];
  /** The turns that were interrupted. */
  readonly interrupted: number[] = [];
  readonly answered: AnswerOrder[] = [];
  /** The attachments that the daemon got. */
  readonly attached = new Map<string, Uint8Array>();
  #turns = 0;
  #next: readonly MessageHandedOver[] = [];
  offers: RuntimeOffers = {
    models: [{ id: "platform/fast", name: "Fast" }],
    agents: [{ name: "build", description: "Changes files" }],
    default_model: "platform/fast",
  };

  /** Nothing was said. */
  forget(): void {
    this.handed.length = 0;
    this.interrupted.length = 0;
    this.answered.length = 0;
    this.attached.clear();
    this.#next = [];
    this.#turns = 0;
  }

  /** The answers to the next messages. After them, each message is accepted and begins the next turn. */
  answerNext(...answers: readonly MessageHandedOver[]): void {
    this.#next = answers;
  }

  get layer(): Steering {
    return {
      hand: (_link, _context, message) => Effect.sync(() => this.#hand(message)),
      attach: (_link, _context, { id, content }) => Effect.sync(() => void this.attached.set(id, content)),
      interrupt: (_link, _context, { turn }) =>
        Effect.as(
          Effect.sync(() => this.interrupted.push(turn)),
          true,
        ),
      answer: (_link, _context, order) =>
        Effect.as(
          Effect.sync(() => this.answered.push(order)),
          true,
        ),
      models: () => Effect.sync(() => this.offers),
    };
  }

  #hand(message: OutgoingMessage): MessageHandedOver {
    this.handed.push(message);
    const [answer, ...others] = this.#next;
    this.#next = others;
    if (answer !== undefined) return answer;
    const missing = (message.attachments ?? []).filter(({ id }) => !this.attached.has(id));
    if (missing.length > 0) return { outcome: "incomplete", attachments: missing.map(({ id }) => id) };
    this.#turns += 1;
    return { outcome: "accepted", turn: this.#turns };
  }
}
