/**
 * Bounds the API requests under way (PLATFORM_REQUESTS_AT_ONCE). Without a bound, an overloaded service answers every
 * request late. With a bound, it serves the accepted requests, and tells the others at once to retry later. A stream
 * counts until its answer begins. Git, webhooks, the relay and previews have bounds of their own, and the two health
 * endpoints always pass.
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

  /** Counts a request until `answered` or the end of its connection. False: too many are under way. */
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

  /** The answer is ready. Only sending it is left. */
  answered(request: object): void {
    this.#leave.get(request)?.();
  }
}
