/** A map of limited size. If it is full, the entries that were set first make room. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  readonly #leave: (value: Value) => void;
  #weight = 0;

  /**
   * @param limit of the weights together.
   * @param weigh how much a value weighs. By default each weighs 1, so the limit is a number of entries.
   * @param leave hears of each value that makes room, after it has left.
   */
  constructor(
    limit: number,
    weigh: (value: Value) => number = () => 1,
    leave: (value: Value) => void = () => undefined,
  ) {
    super();
    this.#limit = limit;
    this.#weigh = weigh;
    this.#leave = leave;
  }

  /** What all values weigh together. */
  get weight(): number {
    return this.#weight;
  }

  /** Makes the entry the newest one. A value that weighs more than the limit is not kept. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    this.#weight += this.#weigh(value);
    for (const [oldest, left] of this) {
      if (this.#weight <= this.#limit) break;
      this.delete(oldest);
      this.#leave(left);
    }
    return this;
  }

  /** Reads an entry and makes it the newest one, so that the least recently used entry makes room. */
  use(key: Key): Value | undefined {
    const value = this.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  override delete(key: Key): boolean {
    const value = this.get(key);
    if (value !== undefined) this.#weight -= this.#weigh(value);
    return super.delete(key);
  }

  override clear(): void {
    super.clear();
    this.#weight = 0;
  }
}
