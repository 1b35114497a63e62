/**
 * The newest lines of the daemon's log, for whoever reads along (api.md 7 `GET /platform/logs`): its own, and the agent
 * runtime's output.
 *
 *  K1 Lines are numbered from 1 without a hole: a reader that names the last it has knows what it missed.
 *  K2 Never more than `RING_BYTES`: the oldest lines go, whether somebody still wanted them or not.
 */

/** As much as is kept of a session's log in the end (api.md 3). */
export const RING_BYTES = 1024 * 1024;

/** A line as it was written: one JSON object, without the end of line. */
export interface KeptLine {
  readonly seq: number;
  readonly text: string;
}

export class LogRing {
  readonly #write: (line: string) => void;
  readonly #listeners = new Set<() => void>();
  #lines: KeptLine[] = [];
  /** Where the oldest kept line stands in `#lines`. */
  #head = 0;
  #bytes = 0;
  #last = 0;

  /** `write` gets every line with its end, as it is added. */
  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** Adds the line that `make` gives for the next number. */
  add(make: (seq: number) => string): void {
    this.#last += 1;
    const line = { seq: this.#last, text: make(this.#last) };
    this.#lines.push(line);
    this.#bytes += sizeOf(line);
    while (this.#bytes > RING_BYTES) this.#dropOldest();
    this.#write(`${line.text}\n`);
    for (const listener of this.#listeners) listener();
  }

  /** Lines after a number, oldest first: at most so many bytes of them, and one at least where there is one. */
  after(seq: number, maxBytes: number): readonly KeptLine[] {
    const first = this.#lines[this.#head]?.seq ?? this.#last + 1;
    const found: KeptLine[] = [];
    let room = maxBytes;
    for (let at = this.#head + Math.max(0, seq + 1 - first); at < this.#lines.length && room > 0; at += 1) {
      const line = this.#lines[at];
      if (line === undefined) break;
      found.push(line);
      room -= sizeOf(line);
    }
    return found;
  }

  /** Everything that is kept, as it was written. */
  get text(): string {
    return this.#lines
      .slice(this.#head)
      .map(({ text }) => `${text}\n`)
      .join("");
  }

  /** How many listen. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Calls after each line that is added, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #dropOldest(): void {
    const oldest = this.#lines[this.#head];
    if (oldest === undefined) return;
    this.#bytes -= sizeOf(oldest);
    this.#head += 1;
    // Moving the rest costs as much as it is long: done once a half of the array is behind the head.
    if (this.#head * 2 < this.#lines.length) return;
    this.#lines = this.#lines.slice(this.#head);
    this.#head = 0;
  }
}

const sizeOf = ({ text }: KeptLine): number => Buffer.byteLength(text) + 1;
