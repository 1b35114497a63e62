/**
 * Numbers the turns of the agent session, from 1, and decides when each of them has ended.
 *
 *  B1 At most one turn is open. Its number is one more than how many have ended.
 *  B2 A number ends once. The state is told as working exactly while a turn is open, so an end follows each beginning.
 *  B3 A turn opens before its prompt or message is handed over, or when the runtime is seen at work.
 *  B4 While a prompt or message is being handed over, only the handover decides about its turn: a runtime that restarts
 *     meanwhile gets it again.
 *  B5 After the handover, a turn ends when the runtime rests after the turn has begun, or when the runtime itself ends. A
 *     turn that shows no sign of a beginning within `BEGIN_WITHIN_MS` counts as begun.
 *  B6 A look at the runtime counts for the turn that was open then, and for no later one.
 */
import type { TurnNow } from "../../src/domain/conversation/conversation.ts";
import type { ConversationTurn } from "../../src/domain/session/last-turn.ts";

/** A busy runtime needs seconds from taking a message to its first sign of work. */
export const BEGIN_WITHIN_MS = 60_000;

export interface OpenTurn {
  readonly number: number;
  /** The message or prompt that began it. Null if the runtime began it on its own. */
  readonly messageId: string | null;
  /** B4. */
  readonly isHanding: boolean;
  readonly hasBegun: boolean;
  /** When it was handed over, ms since the epoch. */
  readonly handedMs: number;
  /** It must end: a person has interrupted it. */
  readonly isStopping: boolean;
}

const IDLE: TurnNow = { state: "idle", waiting_for: null };
const RUNNING: TurnNow = { state: "running", waiting_for: null };

export class TurnBook {
  readonly #tell: (now: TurnNow, endedTurn: number) => void;
  #open: OpenTurn | null = null;
  #ended = 0;
  #seen: TurnNow = IDLE;
  /** The message that began the last turn that ended. */
  #lastMessageId: string | null = null;

  /** @param tell gets the state and how many turns have ended, whenever one of them may have changed */
  constructor(tell: (now: TurnNow, endedTurn: number) => void) {
    this.#tell = tell;
  }

  get open(): OpenTurn | null {
    return this.#open;
  }

  /** How many turns have ended. */
  get ended(): number {
    return this.#ended;
  }

  /**
   * The open turn, or the last one. The runtime tells how a turn ended before it is seen at rest, so the turn that ended is
   * this one.
   */
  get newest(): ConversationTurn {
    const open = this.#open;
    return open === null
      ? { number: this.#ended, message_id: this.#lastMessageId }
      : { number: open.number, message_id: open.messageId };
  }

  /**
   * A prompt or a message is about to be handed over. A message whose handover has failed keeps its turn.
   *
   * @returns its turn's number
   * @throws if another turn is open
   */
  begin(messageId: string): number {
    const open = this.#open;
    if (open !== null && open.messageId !== messageId)
      throw new Error(`turn ${open.number} is open while another one begins`);
    return this.#begin(messageId, { isHanding: true, hasBegun: false });
  }

  /** The runtime has it, or may have it. */
  handed(number: number, { hasBegun, nowMs }: { readonly hasBegun: boolean; readonly nowMs: number }): void {
    if (this.#open?.number !== number) return;
    this.#open = { ...this.#open, isHanding: false, hasBegun, handedMs: nowMs };
    this.#told();
  }

  /** The runtime did not take it, because it works on something else. That is what this number names from now on. */
  foundBusy(number: number): void {
    if (this.#open?.number !== number) return;
    this.#open = { ...this.#open, messageId: null, isHanding: false, hasBegun: true };
    this.#told();
  }

  /** The runtime will never take it. */
  refused(number: number): void {
    if (this.#open?.number === number) this.#end();
  }

  /** What the conversation's events say. They may come late, so they begin and end no turn. */
  observed(now: TurnNow): void {
    this.#seen = now;
    if (this.#open !== null) this.#told();
  }

  /** The runtime was at work. `number`: the turn that was open then. */
  sawWork(number: number | null): void {
    if (this.#open === null && number === null) this.#begin(null, { isHanding: false, hasBegun: true });
    else if (this.#open?.number === number && !this.#open.isHanding)
      this.#open = { ...this.#open, hasBegun: true };
  }

  /** The runtime was at rest. `hasBegun`: it shows that the turn has begun before. @returns whether the turn ends */
  sawRest(
    number: number,
    { hasBegun, nowMs }: { readonly hasBegun: boolean; readonly nowMs: number },
  ): boolean {
    const open = this.#open;
    if (open?.number !== number || open.isHanding) return false;
    if (!hasBegun && !open.hasBegun && nowMs - open.handedMs < BEGIN_WITHIN_MS) return false;
    this.#end();
    return true;
  }

  /** The runtime's process is gone. */
  runtimeEnded(): void {
    this.#seen = IDLE;
    if (this.#open === null || this.#open.isHanding) this.#told();
    else this.#end();
  }

  /** The turn must end. @returns whether it is open */
  stop(number: number): boolean {
    if (this.#open?.number !== number) return false;
    this.#open = { ...this.#open, isStopping: true };
    return true;
  }

  #begin(messageId: string | null, state: Pick<OpenTurn, "isHanding" | "hasBegun">): number {
    const number = this.#ended + 1;
    this.#open = {
      number,
      messageId,
      ...state,
      handedMs: 0,
      isStopping: this.#open?.isStopping ?? false,
    };
    this.#told();
    return number;
  }

  #end(): void {
    this.#lastMessageId = this.#open?.messageId ?? null;
    this.#open = null;
    this.#ended += 1;
    this.#told();
  }

  #told(): void {
    if (this.#open === null) this.#tell(IDLE, this.#ended);
    else this.#tell(this.#seen.state === "requires_action" ? this.#seen : RUNNING, this.#ended);
  }
}
