/** The filters of a list. They are in the address, so that a link, a reload and the back button keep them. */
import { useSyncExternalStore } from "react";

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

/** Replaces the address, so that the back button leads to the page before, not through every choice. */
const replaceQuery = (query: URLSearchParams): void => {
  const [path = ""] = location.hash.split("?", 1);
  location.replace(query.size === 0 ? path : `${path}?${query}`);
  changed();
};

/** @param value "" removes the filter */
export const setFilter = (name: string, value: string): void => {
  const query = new URLSearchParams(search());
  if (value === "") query.delete(name);
  else query.set(name, value);
  replaceQuery(query);
};

export const removeFilters = (): void => replaceQuery(new URLSearchParams());
