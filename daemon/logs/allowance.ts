/** Limits how fast the log may grow (api.md 8: 1 MiB/s). Output beyond that is counted, and not written. */

const BYTES_PER_SECOND = 1024 * 1024;
const BYTES_AT_ONCE = 1024 * 1024;

export class Allowance {
  readonly #clock: () => number;
  #bytes = BYTES_AT_ONCE;
  #atMs: number;

  /** @param clock milliseconds since any fixed point */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
    this.#atMs = clock();
  }

  /** How much may be written now. Negative after an overdraft. */
  get bytes(): number {
    const now = this.#clock();
    this.#bytes = Math.min(BYTES_AT_ONCE, this.#bytes + ((now - this.#atMs) / 1000) * BYTES_PER_SECOND);
    this.#atMs = now;
    return this.#bytes;
  }

  spend(bytes: number): void {
    this.#bytes -= bytes;
  }
}
