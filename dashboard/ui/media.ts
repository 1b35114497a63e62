import { useSyncExternalStore } from "react";

/** A window with room for one column. As in style.css. */
export const PHONE = "(max-width: 40rem)";

/** Whether the window fits the media query. The component is drawn again when that changes. */
export const useMedia = (query: string): boolean =>
  useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
