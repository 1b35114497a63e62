/** What a listing or a restoration leaves out, in classes and by name. */
import type { LeftOut } from "../../src/domain/save/listing.ts";

/** How many are named. The others are counted with their reason. */
const NAMED_MAX = 1000;

export class Left {
  readonly #classes = new Map<string, { readonly path: string; count: number }>();
  readonly #named: LeftOut[] = [];

  /** One more of a class, which is named by its first path. */
  count(path: string, reason: string): void {
    const entry = this.#classes.get(reason);
    if (entry === undefined) this.#classes.set(reason, { path, count: 1 });
    else entry.count += 1;
  }

  /** One that is named itself. */
  name(path: string, reason: string): void {
    if (this.#named.length < NAMED_MAX) this.#named.push({ path, reason });
    else this.count(path, reason);
  }

  get all(): readonly LeftOut[] {
    const classes = [...this.#classes].map(([reason, { path, count }]) => ({ path, reason, count }));
    return [...this.#named, ...classes];
  }
}
