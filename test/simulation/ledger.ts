/** What users and senders asked for and were told: the other side of the books that the checkers compare. */

/** A person's request, or what became of it; null: no answer came (yet). */
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

export class Ledger {
  readonly asked: Asked[] = [];
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
