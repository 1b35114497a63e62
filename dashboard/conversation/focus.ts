/** Where the focus goes when what has it leaves the document. */
import { type RefObject, useLayoutEffect } from "react";

/** It stays in the conversation, or on the page: not outside of it. @param next has it then, instead */
export const useFocusKept = (
  element: RefObject<HTMLElement | null>,
  next?: RefObject<HTMLElement | null>,
): void => {
  useLayoutEffect(() => {
    const { current } = element;
    const around = current?.closest<HTMLElement>("[role=log]") ?? document.getElementById("main");
    return () => {
      if (current?.contains(document.activeElement) === true)
        (next?.current ?? around)?.focus({ preventScroll: true });
    };
  }, [element, next]);
};
