/** What the older parts of the page describe (`dom.js`), within a remade one. */
import { useLayoutEffect, useRef } from "react";
import { type Child, morph } from "../dom.js";

/** It keeps the focus, opened details and typed text while it changes. */
export const Drawn = ({ view }: { readonly view: Child | Child[] }) => {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (place.current !== null) morph(place.current, [view].flat());
  });
  return <div ref={place} data-own="drawn" />;
};
