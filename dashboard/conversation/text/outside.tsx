/**
 * The elements whose addresses the page's own elements refuse (`ui/jsx-runtime.ts`): links in texts of other authors, and pictures
 * that a person attached. Each address is checked here.
 */
import { createElement, type ReactNode } from "react";
import { checkOutside, checkPicture } from "../../elements/dom.ts";
import { visible } from "../../elements/text.ts";

/** A link that opens in a new tab, and tells the other site nothing about this one. */
export const Outside = ({ to, children }: { readonly to: string; readonly children: ReactNode }) => {
  checkOutside(to);
  const link = { href: to, target: "_blank", rel: "noopener noreferrer", title: visible(to) };
  return createElement("a", link, children);
};

/** @param path of the attachment in the API */
export const Picture = ({ path, alt }: { readonly path: string; readonly alt: string }) => {
  checkPicture(path);
  return createElement("img", { src: path, alt: visible(alt), loading: "lazy", decoding: "async" });
};
