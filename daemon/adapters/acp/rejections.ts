/**
 * The words with which a permission is rejected. The Agent Client Protocol has no place for them beside the answer, so the agent gets them
 * as a text.
 *
 *  J1 If the agent ends its turn by itself after the rejection, the turn goes on with the words (AcpAgent).
 *  J2 Otherwise they come before the next message (AcpSteering).
 *  J3 The service's own words say that no person answers, and ask the agent to go on without the permission. An agent that says something after
 *     the rejection goes on by itself, so it does not get them. A later message may come from a person who answers.
 */
import { cutText } from "../../../src/domain/text.ts";

/** How much of a command or title is repeated, characters. */
const WHAT_MAX = 200;

interface Rejection {
  readonly what: string;
  readonly words: string;
  /** Whether the service rejected it, because no person answers. */
  readonly isOurs: boolean;
}

export class Rejections {
  #untold: readonly Rejection[] = [];

  add(rejection: Rejection): void {
    this.#untold = [...this.#untold, rejection];
  }

  /** J3. */
  dropOurs(): void {
    this.#untold = this.#untold.filter(({ isOurs }) => !isOurs);
  }

  /** The words that the agent has not heard. Null if it has heard all. */
  get text(): string | null {
    const lines = this.#untold.map(
      ({ what, words }) => `The permission for “${cutText(what, WHAT_MAX)}” was rejected: ${words}`,
    );
    return lines.length === 0 ? null : lines.join("\n");
  }

  /** The agent hears it. */
  told(): void {
    this.#untold = [];
  }
}
