/**
 * Bounds the API's requests that are under way (PLATFORM_REQUESTS_AT_ONCE). A service that takes more than it can serve answers all of
 * them late; with a bound it answers those it took, and tells the others at once to come back. A stream is under way until its
 * answer begins. Git, webhooks, the relay and previews have bounds of their own, and the two questions about health always pass.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

const UNBOUNDED = /^(?:\/healthz|\/readyz|\/v1\/git\/.*)(?:\?|$)/;

export class InFlight {
  readonly #most: number;
  readonly #leave = new WeakMap<object, () => void>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a request in until `answered` or the end of its connection. False: there are too many. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (UNBOUNDED.test(request.url ?? "")) return true;
    if (this.#count >= this.#most) return false;
    this.#count += 1;
    let isIn = true;
    const leave = (): void => {
      if (isIn) this.#count -= 1;
      isIn = false;
    };
    this.#leave.set(request, leave);
    response.once("close", leave);
    return true;
  }

  /** Its answer is made; what is left is to send it. */
  answered(request: object): void {
    this.#leave.get(request)?.();
  }
}
