/** The filters of a page's list. They are in the address, so that a link, a reload and the back button keep them. */

/** How long the reader rests before a typed text narrows the list. */
export const TYPING_MS = 300;

/** @param value "" removes it */
export const narrow = (name: string, value: string) => {
  const [path = "", query = ""] = location.hash.split("?", 2);
  const wanted = new URLSearchParams(query);
  if (value === "") wanted.delete(name);
  else wanted.set(name, value);
  // Replaces the address, so that the back button leads to the page before, not through every choice.
  location.replace(wanted.size === 0 ? path : `${path}?${wanted}`);
};

const filterOf = (target: EventTarget | null): HTMLInputElement | HTMLSelectElement | null =>
  (target instanceof HTMLSelectElement || target instanceof HTMLInputElement) &&
  target.dataset["filter"] !== undefined
    ? target
    : null;

let typing: ReturnType<typeof globalThis.setTimeout> | undefined;

/** Listens for the whole life of the page. */
export const followFilters = () => {
  document.addEventListener("change", (event) => {
    const filter = filterOf(event.target);
    if (filter === null) return;
    clearTimeout(typing);
    narrow(filter.dataset["filter"] ?? "", filter.value.trim());
  });

  document.addEventListener("input", (event) => {
    const filter = filterOf(event.target);
    if (!(filter instanceof HTMLInputElement)) return;
    clearTimeout(typing);
    const { hash } = location;
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    typing = setTimeout(() => {
      // The reader may have left meanwhile.
      if (filter.isConnected && location.hash === hash)
        narrow(filter.dataset["filter"] ?? "", filter.value.trim());
    }, TYPING_MS);
  });
};

/** Shows the whole list again. */
export const clearFilters = () => {
  for (const input of document.querySelectorAll("input[data-filter]")) {
    if (input instanceof HTMLInputElement) input.value = "";
  }
  location.replace(location.hash.split("?", 1)[0] ?? "");
};
