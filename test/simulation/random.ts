/** Randomness from a seed: the same seed and label give the same numbers, whichever other streams were drawn from. */

/** Mixes a text into 32 bits (FNV-1a). */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
};

export class Random {
  #state: number;

  constructor(seed: number, label: string) {
    this.#state = hashOf(`${seed}/${label}`);
  }

  /** 32 bits (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** From 0 up to 1, without it. */
  fraction(): number {
    return this.next() / 0x1_0000_0000;
  }

  /** From `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  pick<A>(of: readonly [A, ...A[]]): A {
    return of[this.between(0, of.length - 1)] ?? of[0];
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; at += 1) bytes[at] = this.next();
    return bytes;
  }
}
