/**
 * Bounds how many tasks run at the same time, together and for each project. Others wait in order; one whose project has enough is
 * passed by.
 */
export class Turns {
  readonly #limits: { readonly all: number; readonly each: number };
  readonly #running = new Map<string, number>();
  #count = 0;
  #waiting: { readonly project: string; readonly go: () => void }[] = [];

  constructor(limits: { readonly all: number; readonly each: number }) {
    this.#limits = limits;
  }

  /** Runs the task when it is its turn. */
  async run<A>(project: string, task: () => Promise<A>): Promise<A> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ project, go: resolve });
    this.#next();
    await promise;
    try {
      return await task();
    } finally {
      const left = (this.#running.get(project) ?? 1) - 1;
      if (left === 0) this.#running.delete(project);
      else this.#running.set(project, left);
      this.#count -= 1;
      this.#next();
    }
  }

  #next(): void {
    const { all, each } = this.#limits;
    this.#waiting = this.#waiting.filter(({ project, go }) => {
      const own = this.#running.get(project) ?? 0;
      if (this.#count >= all || own >= each) return true;
      this.#running.set(project, own + 1);
      this.#count += 1;
      go();
      return false;
    });
  }
}
