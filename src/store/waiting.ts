/** Readers that wait for a project's next event. Shared by both adapters. */
import * as Effect from "effect/Effect";

export class Waiting {
  readonly #byProject = new Map<string, Set<() => void>>();

  wait(projectId: string): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const wake = () => {
        resume(Effect.void);
      };
      const waiting = this.#byProject.get(projectId) ?? new Set();
      this.#byProject.set(projectId, waiting.add(wake));
      return Effect.sync(() => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#byProject.get(projectId) === waiting)
          this.#byProject.delete(projectId);
      });
    });
  }

  /** Null: all of them. */
  wake(projectId: string | null): void {
    const projects = projectId === null ? [...this.#byProject.keys()] : [projectId];
    for (const project of projects) {
      const waiting = this.#byProject.get(project);
      this.#byProject.delete(project);
      for (const wake of waiting ?? []) wake();
    }
  }
}
