/**
 * The document that the terminal's library gets. The library writes `style` elements and `style` attributes, which the page's
 * policy refuses, because text of others could become a style. The browser's objects for styles are allowed, because markup
 * cannot use them. So the same styles go there.
 */

/** An element that shows nothing, and whose text goes to a style sheet of the document. A `style` element is refused even if it is empty. */
const withSheet = () => {
  const element = Document.prototype.createElement.call(document, "meta");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (text) => {
      sheet.replaceSync(String(text));
    },
  });
  // The library removes the element when the terminal is gone.
  element.remove = () => {
    forget(sheet);
    HTMLElement.prototype.remove.call(element);
  };
  return element;
};

/** @param sheet that the document had */
export const forget = (sheet: CSSStyleSheet) => {
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
};

/** Sets the `style` attribute by the browser's object. */
const setAttribute = function (this: HTMLElement, name: string, value: string) {
  if (name === "style") this.style.cssText = value;
  else HTMLElement.prototype.setAttribute.call(this, name, value);
};

const createElement = (tag: string) => {
  if (tag === "style") return withSheet();
  const element = Document.prototype.createElement.call(document, tag);
  element.setAttribute = setAttribute;
  return element;
};

/** The page's document, with another way to create elements. */
export const styledDocument: Document = new Proxy(document, {
  get: (target, name) => {
    if (name === "createElement") return createElement;
    const value = Reflect.get(target, name);
    return typeof value === "function" ? value.bind(target) : value;
  },
});

/**
 * Does something while also the page's own document creates elements in this way: version 6.0.0 of the library creates the style of
 * its scroll bar there, whatever document it was given.
 */
export const styling = (work: () => void) => {
  document.createElement = createElement as typeof document.createElement;
  try {
    work();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
};
