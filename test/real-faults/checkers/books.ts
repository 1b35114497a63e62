/** The requests of users and senders with their answers: the other side of the books that the checkers compare. */
import type { Answer } from "../../support/webhooks/webhook-sender.ts";

export type Kind = "create" | "stop" | "restart" | "remove" | "fire";

/** A user's request; `answer` is null where none came, or the service could not say (5xx): it may have happened. */
export interface Asked {
  readonly kind: Kind;
  /** The session that it was about, or that it made; null where that is not known. */
  sessionId: string | null;
  readonly begun: number;
  ended: number | null;
  answer: number | null;
}

export class Books {
  readonly asked: Asked[] = [];
  /** Every answer that each delivery id got. */
  readonly deliveries = new Map<string, readonly Answer[]>();
  /** Commits that a sandbox's git was told are taken, by session. */
  readonly pushed = new Map<string, string[]>();
  /** Tips of default branches before the first merge, by project. */
  readonly began = new Map<string, string>();
  /** Git passwords that were minted, by sandbox. */
  readonly passwords = new Map<string, string>();
  #clock = 0;

  /** Counts requests and answers on one clock. */
  tick(): number {
    this.#clock += 1;
    return this.#clock;
  }

  /** Notes a request before it is made. */
  ask(kind: Kind, sessionId: string | null): Asked {
    const asked: Asked = { kind, sessionId, begun: this.tick(), ended: null, answer: null };
    this.asked.push(asked);
    return asked;
  }
}
