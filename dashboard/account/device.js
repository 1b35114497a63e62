/** Signs a program in that has no browser: the reader types its code, sees what asks, and says what it may do. */
import { grantFields, grantOf } from "./account.js";
import { getJson, post } from "../api/api.js";
import { h } from "../elements/dom.js";
import { formView } from "../elements/forms.js";
import { now } from "../elements/format.js";
import { button, callout, facts, time } from "../elements/parts.js";

/** @typedef {import("../wire.d.ts").DeviceLogin} DeviceLogin */
/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {{code: string, login: DeviceLogin, decided: "" | "approved" | "denied"}} Found */

/** The login with the code that the reader typed. @type {Found | null} */
let found = null;

const device = {
  /** @returns {Promise<{found: Found | null, projects: Project[]}>} */
  load: async () => {
    if (found !== null && Date.parse(found.login.expires_at) <= now()) found = null;
    const { projects } = await getJson("/v1/projects?limit=200");
    return { found, projects };
  },

  title: () => "Sign in a program",

  /** @param {{found: Found | null, projects: Project[]}} data */
  view: ({ found: shown, projects }) => [
    h("h1", { "data-key": "heading" }, "Sign in a program"),
    ...(shown === null ? codeForm() : shown.decided === "" ? decision(shown, projects) : outcome(shown)),
  ],
};

const codeForm = () => [
  h(
    "p",
    { class: "quiet", "data-key": "about" },
    "A program without a browser, for example the command line, shows a code of eight letters.",
  ),
  formView({
    action: "look-device",
    submit: "Continue",
    fields: [{ name: "code", label: "Code", placeholder: "BCDF-GHJK", mono: true, required: true }],
  }),
];

/** @param {Found} shown @param {Project[]} projects */
const decision = ({ code, login }, projects) => [
  h(
    "div",
    { "data-key": "warning" },
    callout(
      "warn",
      h(
        "p",
        {},
        "Approve only if you started this program yourself, just now. It will act as you. If another person sent you the code, deny.",
      ),
    ),
  ),
  facts([
    ["Calls itself", login.client],
    ["Address", login.address ?? "unknown"],
    ["Software", login.user_agent ?? "unknown"],
    ["Started", time(login.created_at)],
  ]),
  formView({ action: "approve-device", submit: "Approve", input: { code }, fields: grantFields(projects) }),
  h(
    "p",
    { class: "actions", "data-key": "deny" },
    button("deny-device", "Deny", { class: "danger", "data-code": code }),
  ),
];

/** @param {Found} shown */
const outcome = ({ login, decided }) => [
  h(
    "p",
    { "data-key": "outcome" },
    decided === "approved"
      ? `${login.client} is signed in as you. You can close this page and go on there. To end its access, revoke its token on the account's page.`
      : `${login.client} is denied.`,
  ),
  h(
    "p",
    { class: "actions", "data-key": "next" },
    decided === "approved" && h("a", { class: "button", href: "#/account" }, "Account"),
    button("next-device", "Type another code"),
  ),
];

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const forms = {
  "look-device": async ({ code = "" }, _input, page) => {
    const login = await post("/v1/device-logins/look", { code });
    found = { code, login, decided: "" };
    page.refresh();
  },
  "approve-device": async (typed, { code = "" }, page) => {
    const login = await post("/v1/device-logins/approve", { code, ...grantOf(typed) });
    found = { code, login, decided: "approved" };
    page.refresh();
  },
};

/** @type {Record<string, import("../frame/actions.js").Action>} */
export const actions = {
  "deny-device": async ({ code = "" }, page) => {
    await post("/v1/device-logins/deny", { code });
    if (found !== null) found = { ...found, decided: "denied" };
    page.refresh();
  },
  "next-device": async (_input, page) => {
    found = null;
    page.refresh();
  },
};

export const pages = { device };
