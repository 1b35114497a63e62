/** Short notices that float over every page: what an action did, why it failed, or why the page cannot be read. */
import { h } from "../elements/dom.ts";
import { button, callout, prose } from "../elements/parts.ts";
import type { Me } from "../wire.d.ts";
import type { ApiError } from "../api/api.ts";

/** Long enough to read two lines and to reach the link. */
const NOTICE_MS = 8_000;

let fading: ReturnType<typeof globalThis.setTimeout> | undefined;

const region = () => document.getElementById("notices") as HTMLElement;

const show = (shown: HTMLElement | null) => {
  clearTimeout(fading);
  region().replaceChildren(...(shown === null ? [] : [shown]));
};

/** The outcome of an action. @param link its label and its target */
export const notice = (text: string, link?: [string, string]) => {
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

/** The outcome of an action that leads to another page. Going there takes earlier notices away. */
export const noticeAt = (hash: string, text: string, link?: [string, string]) => {
  addEventListener("hashchange", () => notice(text, link), { once: true });
  location.hash = hash;
};

/** Where a reader can do something about a refusal, by its code. */
const REMEDIES: Record<string, [string, string]> = {
  session_cap_reached: ["Show the sessions in use", "#/queue"],
};

/** Why an action failed. It stays until the reader does something else. @param code the refusal's @param remedy a link's label and target */
export const complain = (text: string, code: string = "", remedy = REMEDIES[code]) => {
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

/** Above every page of a restored copy until it is let go. */
export const pausedBanner = ({ account }: Me) =>
  h(
    "div",
    { role: "status", "data-key": "paused", class: "paused" },
    h("strong", {}, "This installation is a restored copy and is paused. "),
    "Schedules, queues, webhooks and pushes to other servers wait, so that it does not repeat what its original does.",
    account.operator === true && h("p", { class: "actions" }, button("resume-installation", "Resume")),
  );

/** Why a page cannot be read. @param shown whether the page still shows older data */
export const problemView = (error: ApiError, shown: boolean) =>
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

/** External links open in a new tab, without a referrer. */
const linkTo = (href: string) =>
  href.startsWith("#") ? { href } : { href, target: "_blank", rel: "noreferrer" };
