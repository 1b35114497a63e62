/**
 * Makes each element of a page: the compiler turns JSX into calls of `jsx` and `jsxs`. So no page can forget these rules
 * (threats.md T08, P09):
 *
 *  E1 Text becomes a text node or the value of an attribute. Invisible characters in it are made visible.
 *  E2 No attribute has markup, or an address that the browser loads.
 *  E3 A link leads within the page, to this service, to a preview, or to an editor.
 */
import type { ElementType, Key } from "react";
import { jsx as make, jsxs as makeAll } from "react/jsx-runtime";
import { checkLink } from "../elements/dom.ts";
import { visible } from "../elements/text.ts";

export { Fragment } from "react/jsx-runtime";
export type { JSX } from "react";

type Props = Readonly<Record<string, unknown>>;

const REFUSED = new Set(["dangerouslySetInnerHTML", "srcDoc", "src", "action", "formAction"]);
/** Attributes that are shown or read aloud. */
const SHOWN = new Set(["title", "aria-label", "label", "placeholder"]);

const shownValue = (value: unknown): unknown => (typeof value === "string" ? visible(value) : value);

const guarded = (name: string, value: unknown): unknown => {
  if (REFUSED.has(name)) throw new Error(`the page sets no ${name} attribute`);
  if (name === "href" && typeof value === "string") checkLink(value);
  if (name === "children") return Array.isArray(value) ? value.map(shownValue) : shownValue(value);
  return SHOWN.has(name) ? shownValue(value) : value;
};

const guardedProps = (props: Props): Props =>
  Object.fromEntries(Object.entries(props).map(([name, value]) => [name, guarded(name, value)]));

/** An element with one child or none. */
export const jsx = (type: ElementType, props: Props, key?: Key) => make(type, guardedProps(props), key);

/** An element with several children. */
export const jsxs = (type: ElementType, props: Props, key?: Key) => makeAll(type, guardedProps(props), key);
