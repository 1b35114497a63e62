/**
 * `h` describes elements, `morph` shows them.
 *
 * Text from the API reaches the document only as a text node or an attribute's value, never as markup: this file offers
 * no other way (threats.md T08). Invisible characters in it are made visible (P09).
 */
import { visible } from "./text.ts";

export type Child = Node | string | number | null | undefined | false;
export type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Attributes whose value the browser would execute or load, other than by plain navigation. */
const REFUSED = /^(on.*|style|srcdoc|src|action|formaction)$/i;
/**
 * Links lead within the page, to this service, to a port of a sandbox on the origin that the service names for it, or open a session
 * in an editor on the reader's computer (docs/use/editors.md).
 */
const LINK =
  /^(#|\/(?!\/)|https?:\/\/p\d{1,5}-[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.|vscode:\/\/vscode-remote\/ssh-remote\+[\da-f]{8}\.[\da-f]{8}\.platform\/workspace$)/;
export const checkLink = (href: string) => {
  if (!LINK.test(href)) throw new Error("the page links to itself, to previews and to editors only");
};

/** Attributes that are shown or read aloud. */
const SHOWN = new Set(["title", "aria-label"]);

/** Creates an element. @param attributes `true` sets an empty one; false, null and undefined set none */
export const h = (
  tag: string,
  attributes: Attributes,
  ...children: readonly (Child | Child[])[]
): HTMLElement => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (REFUSED.test(name)) throw new Error(`the page sets no ${name} attribute`);
    if (value === null || value === undefined || value === false) continue;
    const text = value === true ? "" : String(value);
    if (name === "href") checkLink(text);
    element.setAttribute(name, SHOWN.has(name) ? visible(text) : text);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
  return element;
};

const ATTACHMENT = /^\/v1\/projects\/[\da-f-]{36}\/sessions\/[\da-f-]{36}\/attachments\/[\da-f-]{36}$/;

export const checkPicture = (path: string) => {
  if (!ATTACHMENT.test(path)) throw new Error("the page shows attachments only");
};

/** Where links in texts of other authors may lead. */
const OUTSIDE = /^(https?:\/\/|mailto:)/;

/** @param href of a link that leaves the page @throws if it leads to neither the web nor a mail */
export const checkOutside = (href: string) => {
  if (!OUTSIDE.test(href)) throw new Error("texts link to the web and to mail only");
};

/**
 * Makes the children of `parent` look like `next` and keeps existing nodes, so that focus, typed text, selections and
 * opened details survive live updates. Elements with the same `data-key` are the same element. The children of an element
 * with `data-own` stay as they are: other code keeps them.
 */
export const morph = (parent: Element, next: Child[]) => {
  const wanted = [...h("div", {}, ...next).childNodes];
  const keyed: Map<string, ChildNode> = new Map();
  const kept = new Set(wanted.map(keyOf));
  for (const node of parent.childNodes) {
    const key = keyOf(node);
    if (key !== null) keyed.set(key, node);
  }
  let cursor = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    // Old nodes are removed before any node moves, because a moved node loses the focus.
    while (cursor !== null && !kept.has(keyOf(cursor))) cursor = removed(cursor);
    const match = key === null ? cursor : (keyed.get(key) ?? null);
    if (match === null || !isSame(match, node)) {
      // An option that left its list with others before it counts as chosen: each list has one chosen option.
      if (node instanceof HTMLOptionElement) node.selected = node.hasAttribute("selected");
      parent.insertBefore(node, cursor);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(match, cursor);
    update(match, node);
  }
  while (cursor !== null) cursor = removed(cursor);
};

/** @returns the one after it */
const removed = (node: ChildNode): ChildNode | null => {
  const next = node.nextSibling;
  node.remove();
  return next;
};

/** One key on elements of two kinds are two keys. */
const keyOf = (node: Node) => {
  const key = node instanceof Element ? node.getAttribute("data-key") : null;
  return key === null ? null : `${node.nodeName} ${key}`;
};

const isSame = (a: Node, b: Node) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

const update = (shown: Node, wanted: Node) => {
  if (!(shown instanceof Element) || !(wanted instanceof Element)) {
    const [before, after] = [shown.nodeValue ?? "", wanted.nodeValue ?? ""];
    // A selection in a text survives as long as the text only grows.
    if (shown instanceof Text && after.startsWith(before)) shown.appendData(after.slice(before.length));
    else shown.nodeValue = after;
    return;
  }
  const wasSelected = shown.hasAttribute("selected");
  for (const name of shown.getAttributeNames()) {
    if (!wanted.hasAttribute(name) && !isReaders(shown, name)) shown.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (shown.getAttribute(name) !== value && !isReaders(shown, name)) shown.setAttribute(name, value);
  }
  // Once a reader has chosen, the attribute alone has no effect.
  if (shown instanceof HTMLOptionElement && shown.hasAttribute("selected") !== wasSelected) {
    shown.selected = !wasSelected;
  }
  if (!shown.hasAttribute("data-own")) morph(shown, [...wanted.childNodes]);
};

/** Details that the reader opened stay open, at the side where they opened. */
const isReaders = (element: Element, attribute: string) =>
  ["open", "data-side"].includes(attribute) && element.nodeName === "DETAILS";
