/** Something that changes while a page shows it. It uses no document. */
import { useSyncExternalStore } from "react";

export class Store {
  readonly #listeners = new Set<() => void>();
  #version = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Another number after each change. */
  readonly version = (): number => this.#version;

  protected readonly changed = (): void => {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  };
}

/** Draws the component again after each change. */
export const useStore = (store: Store): void => {
  useSyncExternalStore(store.subscribe, store.version);
};
