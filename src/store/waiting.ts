/** Readers that wait for news of a subject, such as a project's next event. Shared by both adapters. */
import * as Effect from "effect/Effect";

export class Waiting {
  readonly #bySubject = new Map<string, Set<() => void>>();

  wait(subject: string): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const wake = () => {
        resume(Effect.void);
      };
      const waiting = this.#bySubject.get(subject) ?? new Set();
      this.#bySubject.set(subject, waiting.add(wake));
      return Effect.sync(() => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#bySubject.get(subject) === waiting) this.#bySubject.delete(subject);
      });
    });
  }

  /** Null means all of them. */
  wake(subject: string | null): void {
    const subjects = subject === null ? [...this.#bySubject.keys()] : [subject];
    for (const each of subjects) {
      const waiting = this.#bySubject.get(each);
      this.#bySubject.delete(each);
      for (const wake of waiting ?? []) wake();
    }
  }
}
