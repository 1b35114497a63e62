/** What the older parts of the page describe (`dom.ts`), within a remade one. */
import { useLayoutEffect, useRef } from "react";
import { type Child, morph } from "../elements/dom.ts";

/** It keeps the focus, opened details and typed text while it changes. */
export const Drawn = ({ view }: { readonly view: Child | Child[] }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { current } = place;
    if (current === null) return;
    const wasInside = current.contains(document.activeElement);
    morph(current, [view].flat());
    // If the focused element disappears, the focus moves to the page's beginning, not outside of it.
    if (wasInside && !current.contains(document.activeElement))
      document.getElementById("main")?.focus({ preventScroll: true });
  });
  return <div ref={place} data-own="drawn" />;
};
