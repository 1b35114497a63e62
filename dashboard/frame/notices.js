/** Short notices above every page: what an action did, why it failed, or why the page cannot be read. */
import { h } from "../elements/dom.js";
import { button, callout, prose } from "../elements/parts.js";

/** Long enough to read two lines and to reach the link. */
const NOTICE_MS = 8_000;

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
  show(
    h(
      "p",
      {},
      prose(text),
      link === undefined ? null : [" ", h("a", linkTo(link[1]), link[0])],
      " ",
      button("dismiss", "Dismiss", { class: "plain" }),
    ),
  );
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  fading = setTimeout(fade, NOTICE_MS);
};

/** The outcome of an action that leads to another page. Going there takes earlier notices away. @param {string} hash @param {string} text @param {[string, string]} [link] */
export const noticeAt = (hash, text, link) => {
  addEventListener("hashchange", () => notice(text, link), { once: true });
  location.hash = hash;
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

/** Above every page of a restored copy until it is let go. @param {import("../wire.d.ts").Me} reader */
export const pausedBanner = ({ account }) =>
  h(
    "div",
    { role: "status", "data-key": "paused", class: "paused" },
    h("strong", {}, "This installation is a restored copy and is paused. "),
    "Schedules, queues, webhooks and pushes to other servers wait, so that it does not repeat what its original does.",
    account.operator === true && h("p", { class: "actions" }, button("resume-installation", "Resume")),
  );

/** Why a page cannot be read. @param {import("../api/api.js").ApiError} error @param {boolean} shown whether the page still shows older data */
export const problemView = (error, shown) =>
  h(
    "div",
    { role: "alert", "data-key": "problem" },
    !shown && h("h1", { class: "unseen" }, "Nothing can be shown"),
    callout(
      "bad",
      error.status === 404
        ? h("strong", {}, prose(error.message))
        : [h("strong", {}, "The page could not be loaded. "), ...prose(error.message)],
      shown && " The information below may be out of date.",
      [0, 502, 503, 504].includes(error.status) && " The page tries again by itself.",
      h("p", { class: "actions" }, button("retry", "Try again")),
    ),
  );

/** It stays while the reader points at it or has the focus in it. */
const fade = () => {
  if (!region().matches(":hover, :focus-within")) dismissNotice();
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  else fading = setTimeout(fade, NOTICE_MS);
};

/** External links open in a new tab, without a referrer. @param {string} href */
const linkTo = (href) => (href.startsWith("#") ? { href } : { href, target: "_blank", rel: "noreferrer" });
