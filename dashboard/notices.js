/** Short notices of what an action did, or why it failed, above every page. */
import { h } from "./dom.js";
import { button, prose } from "./parts.js";

/** Long enough to read two lines and to reach the link. */
const NOTICE_MS = 12_000;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let fading;

const region = () => /** @type {HTMLElement} */ (document.getElementById("notices"));

/** @param {HTMLElement | null} shown */
const show = (shown) => {
  clearTimeout(fading);
  region().replaceChildren(...(shown === null ? [] : [shown]));
};

/** The outcome of an action. @param {string} text @param {[string, string]} [link] its label and its target */
export const notice = (text, link) => {
  show(h("p", {}, prose(text), link === undefined ? null : [" ", h("a", linkTo(link[1]), link[0])]));
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  fading = setTimeout(fade, NOTICE_MS);
};

/** Where a reader can do something about a refusal, by its code. @type {Record<string, [string, string]>} */
const REMEDIES = { session_cap_reached: ["Show the sessions in use", "#/queue"] };

/** Why an action failed. It stays until the reader does something else. @param {string} text @param {string} [code] the refusal's */
export const complain = (text, code = "") => {
  const remedy = REMEDIES[code];
  show(
    h(
      "p",
      { role: "alert", "data-tone": "bad" },
      prose(text),
      " ",
      remedy !== undefined && [h("a", linkTo(remedy[1]), remedy[0]), " "],
      button("dismiss", "Dismiss", { class: "plain" }),
    ),
  );
};

export const dismissNotice = () => show(null);

/** It stays while the reader points at it or has the focus in it. */
const fade = () => {
  if (!region().matches(":hover, :focus-within")) dismissNotice();
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  else fading = setTimeout(fade, NOTICE_MS);
};

/** External links open in a new tab, without a referrer. @param {string} href */
const linkTo = (href) => (href.startsWith("#") ? { href } : { href, target: "_blank", rel: "noreferrer" });
