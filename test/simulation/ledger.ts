/** The requests of users and senders with their answers: the other side of the books that the checkers compare. */
import type { StopReason } from "../../src/domain/session/session.ts";
import type { RequestAnswer } from "../../src/domain/conversation/steering.ts";

/** A user's request and its result; null: no answer came (yet). */
export interface Asked {
  readonly kind:
    | "create"
    | "stop"
    | "restart"
    | "remove"
    | "fire"
    | "replay"
    | "cancel"
    | "propose"
    | "merge"
    | "close"
    | "other";
  /** The session, the fire or the change request that it was about. */
  readonly about: string | null;
  /** Its place among all requests and answers. */
  readonly at: number;
  answer: Answer | null;
}

export interface Answer {
  readonly at: number;
  /** `unknown`: the service could not say (503, a crash of its own): it may have happened. */
  readonly is: "done" | "refused" | "unknown";
  readonly sessionId: string | null;
  /** Why the answered session was stopped. */
  readonly stopReason: StopReason | null;
}

/** A webhook that a sender sends until it is answered, and sometimes again. */
export interface Delivery {
  readonly id: string;
  readonly projectId: string;
  readonly body: Uint8Array;
  readonly signature: string;
  /** The code host asks whether the address answers. */
  readonly isPing: boolean;
  readonly attempts: Attempt[];
}

export interface Attempt {
  readonly wall: number;
  /** `lost`: there was no answer. */
  answer: "fired" | "queued" | "filtered" | "pong" | "refused" | "unavailable" | "lost";
  sessionId: string | null;
}

/** What a person says to the agent. */
export interface SaidMessage {
  readonly id: string;
  readonly sessionId: string;
  /** No other message has it. */
  readonly text: string;
  readonly isUrgent: boolean;
  /** The requests with which it was sent, and those that took it back. */
  readonly posts: Asked[];
  readonly cancels: Asked[];
}

/** A person's answer to a request of the agent. */
export interface SaidAnswer {
  readonly sessionId: string;
  /** The request's item. */
  readonly requestId: string;
  readonly answer: RequestAnswer;
  readonly asked: Asked;
}

/** What an agent called a tool with. */
export interface AskedPage {
  /** No other session has it. */
  readonly page: string;
  readonly sessionId: string;
}

/** A person's decision about a call. */
export interface SaidDecision {
  /** The approval. */
  readonly id: string;
  readonly isApproval: boolean;
  readonly asked: Asked;
}

export class Ledger {
  readonly pages: AskedPage[] = [];
  readonly decisions: SaidDecision[] = [];
  readonly asked: Asked[] = [];
  readonly messages: SaidMessage[] = [];
  readonly answers: SaidAnswer[] = [];
  readonly deliveries: Delivery[] = [];
  /** Tips of the default branches as pushes and merges left them. */
  readonly tips = new Map<string, string>();
  /** Branches whose pushes were taken under another name than they had. */
  readonly mangled: string[] = [];
  #clock = 0;

  tick(): number {
    this.#clock += 1;
    return this.#clock;
  }
}
