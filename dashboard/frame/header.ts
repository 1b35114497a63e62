/**
 * The bar above every page, in one line at every width: the places, the number of sessions that need the reader, and a menu. The menu has each
 * link for which a narrow window has no room, too: style.css shows one of the two.
 */
import { h, morph } from "../elements/dom.ts";
import { counted } from "../elements/format.ts";
import type { Me } from "../wire.d.ts";

type Linked = readonly [hash: string, label: string, title?: string];

const PLACES: readonly Linked[] = [
  ["#/", "Sessions"],
  ["#/projects", "Projects"],
  ["#/automations", "Automations"],
  ["#/activity", "Activity"],
];

/** Pages of the account, for owners. */
const OWNERS: readonly Linked[] = [
  ["#/people", "People"],
  ["#/models", "Models"],
  ["#/audit", "Audit"],
];

const OPERATOR: Linked = [
  "#/operator",
  "Operator",
  "For who runs this service: its nodes, settings and checks",
];

/** @param name the class: which widths show it */
const links = (of: readonly Linked[], name: string) =>
  of.map(([href, label, title]) =>
    h("a", { class: name, href, title, "data-key": `${name} ${label}` }, label),
  );

const usage = ({ account }: Me) =>
  h(
    "span",
    { class: "usage" },
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
  );

const guide = () => h("a", { href: "/docs/guide", "data-key": "guide" }, "Guide");

/** @param rights pages that not everybody may see */
const menu = (me: Me, rights: readonly Linked[]) =>
  h(
    "details",
    { class: "menu", "data-key": "menu" },
    h(
      "summary",
      {},
      h("span", { class: "if-wide who", title: me.user.name }, me.user.name),
      h("span", { class: "if-folded" }, "Menu"),
    ),
    h(
      "div",
      { class: "menu-items" },
      ...links(PLACES, "if-narrow"),
      h(
        "button",
        { type: "button", class: "if-least", "data-action": "palette", "data-key": "search" },
        "Search",
      ),
      ...links(rights, "if-folded"),
      usage(me),
      h("a", { href: "#/account", "data-key": "own" }, "Your account"),
      guide(),
      h("button", { type: "button", "data-action": "sign-out", "data-key": "sign-out" }, "Sign out"),
    ),
  );

const asks = (count: number) =>
  count > 0 &&
  h(
    "a",
    { class: "asks", href: "#/", "data-key": "asks" },
    `${count} `,
    h("span", { class: "words" }, count === 1 ? "needs you" : "need you"),
  );

const liveness = (live: boolean | null) =>
  live !== null &&
  h(
    "span",
    { class: "live", "data-live": String(live), "data-key": "live" },
    h("span", {}, live ? "live" : "reconnecting"),
  );

/** @param asking how much waits for the reader */
const accountView = (me: Me, live: boolean | null, asking: number) => {
  const rights = [
    ...(me.user.role === "owner" ? OWNERS : []),
    ...(me.account.operator === true ? [OPERATOR] : []),
  ];
  return [asks(asking), liveness(live), ...links(rights, "if-wide"), menu(me, rights)];
};

const region = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;

export interface Header {
  readonly signedIn: boolean;
  /** Null: not read yet. */
  readonly me: Me | null;
  /** Whether a stream is open. */
  readonly live: boolean | null;
  /** How much waits for the reader. */
  readonly waiting: number;
}

export const drawHeader = ({ signedIn, me, live, waiting }: Header) => {
  morph(region("places"), signedIn ? links(PLACES, "in-bar") : []);
  region("search").toggleAttribute("hidden", !signedIn);
  const account = me === null ? [] : accountView(me, live, waiting);
  morph(region("account"), signedIn ? account : [guide()]);
};
