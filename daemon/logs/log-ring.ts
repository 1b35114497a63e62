/**
 * The newest lines of the daemon's log, for its readers (api.md 7 `GET /platform/logs`): its own lines, and the agent
 * runtime's output.
 *
 *  K1 Lines are numbered from 1 without gaps: a reader that gives its last number learns what it missed.
 *  K2 Never more than `RING_BYTES`: the oldest lines are dropped, even if a reader has not read them.
 */

/** The same size as the log that is kept after a session (api.md 3). */
export const RING_BYTES = 1024 * 1024;

/** A line as it was written: one JSON object, without the line end. */
export interface KeptLine {
  readonly seq: number;
  readonly text: string;
}

export class LogRing {
  readonly #write: (line: string) => void;
  readonly #listeners = new Set<() => void>();
  #lines: KeptLine[] = [];
  /** The index of the oldest kept line in `#lines`. */
  #head = 0;
  #bytes = 0;
  #last = 0;

  /** `write` gets every line with its line end, as it is added. */
  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** Adds the line that `make` returns for the next number. */
  add(make: (seq: number) => string): void {
    this.#last += 1;
    const line = { seq: this.#last, text: make(this.#last) };
    this.#lines.push(line);
    this.#bytes += lineSize(line);
    while (this.#bytes > RING_BYTES) this.#dropOldest();
    this.#write(`${line.text}\n`);
    for (const listener of this.#listeners) listener();
  }

  /** Lines after a number, oldest first, within that many bytes. At least one line, if there is one. */
  after(seq: number, maxBytes: number): readonly KeptLine[] {
    const first = this.#lines[this.#head]?.seq ?? this.#last + 1;
    const lines: KeptLine[] = [];
    let room = maxBytes;
    for (let at = this.#head + Math.max(0, seq + 1 - first); at < this.#lines.length && room > 0; at += 1) {
      const line = this.#lines[at];
      if (line === undefined) break;
      lines.push(line);
      room -= lineSize(line);
    }
    return lines;
  }

  /** All kept lines, as they were written. */
  get text(): string {
    return this.#lines
      .slice(this.#head)
      .map(({ text }) => `${text}\n`)
      .join("");
  }

  /** How many listeners there are. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Calls the listener after each added line, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #dropOldest(): void {
    const oldest = this.#lines[this.#head];
    if (oldest === undefined) return;
    this.#bytes -= lineSize(oldest);
    this.#head += 1;
    // Moving the rest is expensive, so it is done only when the head has passed half of the array.
    if (this.#head * 2 < this.#lines.length) return;
    this.#lines = this.#lines.slice(this.#head);
    this.#head = 0;
  }
}

const lineSize = ({ text }: KeptLine): number => Buffer.byteLength(text) + 1;
