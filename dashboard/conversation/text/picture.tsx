/** A picture that a person attached. The page's own elements refuse its address (`ui/jsx-runtime.ts`), so it is checked here. */
import { createElement } from "react";
import { checkPicture } from "../../elements/dom.ts";
import { visible } from "../../elements/text.ts";

/** @param path of the attachment in the API */
export const Picture = ({ path, alt }: { readonly path: string; readonly alt: string }) => {
  checkPicture(path);
  return createElement("img", { src: path, alt: visible(alt), loading: "lazy", decoding: "async" });
};
