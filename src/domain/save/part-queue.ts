/** The parts that a save still has to store, and the room that is left for them. */
import { halves, type Part } from "./parts.ts";

export class PartQueue {
  readonly #waiting: Part[];
  readonly #hasNoRoom: (part: Part) => void;
  #room: number;
  /** Whether each part is stored by itself, because several together could not be stored. */
  #isSingle = false;

  /**
   * @param parts in the order in which they are stored
   * @param room bytes
   * @param hasNoRoom is called with each path or ref that does not fit and is left out
   */
  constructor(
    parts: readonly Part[],
    { room, hasNoRoom }: { readonly room: number; readonly hasNoRoom: (part: Part) => void },
  ) {
    this.#waiting = [...parts];
    this.#room = room;
    this.#hasNoRoom = hasNoRoom;
  }

  /** The next part that fits. A larger one is divided. Undefined: nothing is left. */
  next(): Part | undefined {
    for (let part = this.#waiting.shift(); part !== undefined; part = this.#waiting.shift()) {
      if (part.bytes <= this.#room) {
        this.#room -= part.bytes;
        return part;
      }
      const smaller = halves(part);
      if (smaller.length === 0) this.#hasNoRoom(part);
      this.#waiting.unshift(...smaller);
    }
    return undefined;
  }

  /** A part to be stored together with the one before. Undefined: none, or each is stored by itself from now on. */
  another(): Part | undefined {
    return this.#isSingle ? undefined : this.next();
  }

  /**
   * Parts that were not stored are tried again: several one by one, a single one in halves.
   *
   * @returns whether that ended at one path or ref, which is left out
   */
  retry(parts: readonly Part[]): boolean {
    for (const { bytes } of parts) this.#room += bytes;
    const [part] = parts;
    const again = parts.length === 1 && part !== undefined ? halves(part) : parts;
    this.#isSingle ||= parts.length > 1;
    this.#waiting.unshift(...again);
    return again.length === 0;
  }
}
