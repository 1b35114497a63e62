/** The bar above every page: how the account stands, and on a phone the menu that has the rest. */
import { h } from "../elements/dom.ts";
import { counted } from "../elements/format.ts";
import type { Me } from "../wire.d.ts";

/** Pages of the account, for owners. */
const OWNERS = [
  ["people", "People"],
  ["models", "Models"],
  ["audit", "Audit"],
] as const;

/** The header's text about the account. @param asking how much waits for the reader */
export const accountView = ({ user, account }: Me, live: boolean | null, asking: number) => [
  asking > 0 &&
    h(
      "a",
      { class: "asks", href: "#/", "data-key": "asks" },
      asking === 1 ? "1 needs you" : `${asking} need you`,
    ),
  live !== null &&
    h("span", { class: "live", "data-live": String(live) }, h("span", {}, live ? "live" : "reconnecting")),
  h(
    "span",
    { class: "usage folds" },
    h("meter", {
      min: 0,
      max: account.session_cap,
      value: account.active_sessions,
      high: account.session_cap * 0.9,
      "aria-label": "Sessions in use",
    }),
    h(
      "span",
      {},
      `${account.active_sessions} of ${counted(account.session_cap, "session")}, `,
      h(
        "a",
        { href: "#/queue", title: "Runs and sessions that wait for a free session" },
        `${account.queued_fires} queued`,
      ),
    ),
  ),
  ...(user.role === "owner" ? OWNERS : []).map(([name, label]) =>
    h("a", { class: "folds", href: `#/${name}`, "data-key": name }, label),
  ),
  account.operator === true &&
    h(
      "a",
      {
        class: "folds",
        href: "#/operator",
        "data-key": "operator",
        title: "For who runs this service: its nodes, settings and checks",
      },
      "Operator",
    ),
  h("a", { class: "who folds", href: "#/account" }, user.name),
  h("button", { type: "button", class: "plain folds", "data-action": "sign-out" }, "Sign out"),
];

/** Parts of the bar for people who are signed in. */
const SIGNED_IN = ["search", "sessions", "projects", "menu"];

export const seeSignedIn = (signedIn: boolean) => {
  for (const id of SIGNED_IN) document.getElementById(id)?.toggleAttribute("hidden", !signedIn);
};

/** On a phone the bar is one line, and the menu has the rest. @param isOpen as it was not before, without it */
export const unfoldHeader = (isOpen?: boolean) => {
  const menu = document.getElementById("menu");
  const next = isOpen ?? menu?.getAttribute("aria-expanded") !== "true";
  menu?.setAttribute("aria-expanded", String(next));
};
