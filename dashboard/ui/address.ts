/** The filters of a list. They are in the address, so that a link, a reload and the back button keep them. */
import { useSyncExternalStore } from "react";
import { clearFilters, narrow } from "../elements/filters.ts";

/** Called when this module changes the address: the browser tells of that later. */
const listeners = new Set<() => void>();

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  addEventListener("hashchange", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("hashchange", listener);
  };
};

const search = (): string => location.hash.split("?", 2)[1] ?? "";

const changed = (): void => {
  for (const listener of listeners) listener();
};

/** The address's query. The component is drawn again when it changes. */
export const useAddressQuery = (): URLSearchParams =>
  new URLSearchParams(useSyncExternalStore(subscribe, search));

/** @param value "" removes the filter */
export const setFilter = (name: string, value: string): void => {
  narrow(name, value);
  changed();
};

export const removeFilters = (): void => {
  clearFilters();
  changed();
};
