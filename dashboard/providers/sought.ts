/** Sections of the page that an address names: `#/models?show=limits`. A session whose limit is reached leads there. */
import { type RefObject, useEffect, useRef } from "react";
import { useAddressQuery } from "../ui/address.ts";

/** Brings the section into view if the address names it. @returns for its element */
export const useSought = (name: "limits" | "prices"): RefObject<HTMLElement | null> => {
  const element = useRef<HTMLElement>(null);
  const isSought = useAddressQuery().get("show") === name;
  useEffect(() => {
    if (isSought) element.current?.scrollIntoView({ block: "start" });
  }, [isSought]);
  return element;
};
