/**
 * Turns that end with a plan: where the agent's mode plans, a person approves the plan before the agent works by it.
 *
 *  P1 A turn that completes in the mode that plans ends with a plan: the agent's last message. It is told together with the turn's end.
 *  P2 A plan waits between two turns. It is settled by its answer, by the next turn, or by the end of the runtime.
 *  P3 The mode is the one that the last message or an approval chose.
 */
import {
  contentText,
  EMPTY_ITEM,
  planRequest,
  type TurnNow,
} from "../../src/domain/conversation/conversation.ts";
import type { RequestAnswer } from "../../src/domain/conversation/steering.ts";
import type { LaunchPlan } from "../../src/domain/sandbox/launch.ts";
import type { ItemDraft } from "../adapters/adapter.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import type { TurnEnd } from "../report.ts";

export interface PlanningOptions {
  readonly feed: Pick<ConversationFeed, "item" | "turn">;
  /** Null if the runtime has no mode that plans, so no turn ends with a plan. */
  readonly plan: LaunchPlan | null;
  /** The mode in which the agent begins by itself. It carries an approved plan out, unless it plans. Null means the runtime's. */
  readonly own: string | null;
  /** The mode that a person chose in a former sandbox. */
  readonly chosen: string | null;
  /** The modes that the runtime offers, its own first. */
  readonly modes: () => readonly string[];
  /** ms since the epoch. */
  readonly now: () => number;
}

const IDLE: TurnNow = { state: "idle", waiting_for: null };

export class Planning {
  readonly #options: PlanningOptions;
  #mode: string | null;
  /** The agent's last message in the present turn, or in the last one. */
  #said: ItemDraft | null = null;
  /** Whether the present turn has completed. */
  #isComplete = false;
  #ended = 0;
  /** The plan that waits. */
  #open: ItemDraft | null = null;

  constructor(options: PlanningOptions) {
    this.#options = options;
    this.#mode = options.chosen ?? options.own;
  }

  /** P3. If null, the mode stays. */
  chose(mode: string | null): void {
    this.#mode = mode ?? this.#mode;
  }

  /** An item of the conversation. */
  readonly item = (draft: ItemDraft): void => {
    const { kind, role, parent_id: parent, content } = draft;
    if (kind === "message" && role === "user") this.#said = null;
    if (kind === "message" && role === "agent" && parent === null && contentText(content) !== "")
      this.#said = draft;
    this.#options.feed.item(draft);
  };

  /** How the present turn ends. It is told before its end is seen. */
  turnEnds({ state }: TurnEnd): void {
    this.#isComplete = state === "completed";
  }

  /** The turn's state, and how many turns have ended. */
  readonly turn = (now: TurnNow, endedTurns: number): void => {
    if (endedTurns > this.#ended) this.#propose(endedTurns);
    this.#ended = endedTurns;
    if (now.state !== "idle") this.#settle("");
    const id = this.#open?.native_id ?? null;
    this.#options.feed.turn(
      id === null ? now : { state: "requires_action", waiting_for: id, rests: true },
      endedTurns,
    );
  };

  /** False: no plan with this id waits here. */
  answer(id: string, answer: RequestAnswer): boolean {
    if (this.#open?.native_id !== id) return false;
    this.#settle("approve" in answer ? "approved" : "");
    this.#options.feed.turn(IDLE, this.#ended);
    return true;
  }

  /** The runtime has ended, and the feed has ended its open items. */
  lose(): void {
    this.#open = null;
    this.#isComplete = false;
  }

  /** P1. */
  #propose(endedTurns: number): void {
    const draft = this.#said;
    const isDone = this.#isComplete;
    this.#isComplete = false;
    const { plan, own } = this.#options;
    if (draft === null || !isDone || plan === null || this.#mode !== plan.mode) return;
    const next = plan.next.length > 0 ? plan.next : this.#options.modes();
    const modes = [...new Set(own === null ? next : [own, ...next])].filter((mode) => mode !== plan.mode);
    if (modes.length === 0) return;
    this.#open = {
      ...EMPTY_ITEM,
      native_id: `plan_${String(endedTurns)}`,
      kind: "request",
      role: "agent",
      status: "pending",
      turn_id: draft.turn_id,
      request: planRequest({
        text: contentText(draft.content),
        modes: modes.map((id) => ({ id, name: id })),
      }),
      created_at: this.#options.now(),
      completed_at: null,
    };
    this.#options.feed.item(this.#open);
  }

  /** P2. @param answer as the conversation shows it */
  #settle(answer: string): void {
    const open = this.#open;
    if (open === null) return;
    this.#open = null;
    this.#options.feed.item({
      ...open,
      status: "completed",
      content: answer === "" ? [] : [{ type: "text", text: answer }],
      completed_at: this.#options.now(),
    });
  }
}
