/** The account: who is signed in, how many sessions it may have, and its access tokens. */
import { getJson, getJsonOrNull, getList, post } from "../api/api.js";
import { tell } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import { formView } from "../elements/forms.js";
import { counted, now } from "../elements/format.js";
import { button, detail, empty, facts, listRow, tag, time } from "../elements/parts.js";

/** @typedef {import("../wire.d.ts").Token} Token */
/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Me} Me */
/** @typedef {{tokens: Token[], more: boolean, projects: Project[], people: import("../wire.d.ts").Person[]}} AccountPage */

const DAY_MS = 86_400_000;

export const account = {
  /** @param {string[]} _params @param {import("../frame/app.js").Extent} extent @returns {Promise<AccountPage>} */
  load: async (_params, { pages }) => {
    const [{ items, more }, { projects }, everyone] = await Promise.all([
      getList("/v1/tokens", "tokens", pages),
      getJson("/v1/projects?limit=200"),
      getJsonOrNull("/v1/people?limit=200", [403]),
    ]);
    return { tokens: items, more, projects, people: everyone?.people ?? [] };
  },

  title: () => "Account",

  /** @param {AccountPage} data @param {Me | null} me */
  view: ({ tokens, more, projects, people }, me) => [
    h("h1", { "data-key": "heading" }, "Account"),
    me &&
      facts([
        ["Account", me.account.name],
        ["Signed in as", me.user.name],
        ["Role", me.user.role],
        ["People", h("a", { href: "#/people" }, "Everyone in the account")],
        ["Models", h("a", { href: "#/models" }, "Providers of models")],
        ["Browsers", h("a", { href: "#/browsers" }, "Where you are signed in")],
        ["Audit", me.user.role === "owner" && h("a", { href: "#/audit" }, "Who did what")],
        ["Tier", me.account.tier],
        ["Sessions", `${me.account.active_sessions} of ${counted(me.account.session_cap, "session")}`],
        ["Queue", h("a", { href: "#/account/state" }, "Why runs start or wait")],
      ]),
    h("p", { class: "actions", "data-key": "sign-out" }, button("sign-out", "Sign out of this browser")),
    h(
      "section",
      { "data-key": "tokens" },
      h("h2", {}, "Access tokens"),
      h(
        "p",
        { class: "quiet" },
        "People, the command line, git and programs use access tokens. The service also makes one for each running session.",
      ),
      tokens.length === 0
        ? empty("No tokens.", "Make one below.")
        : h(
            "ul",
            { class: "rows" },
            tokens.map((token) =>
              row(token, { projects, isOwn: token.id === me?.token.id, of: holder(token, people, me) }),
            ),
          ),
      more && h("p", { class: "more" }, button("more", "Show older tokens")),
    ),
    h("section", { "data-key": "new-token" }, h("h2", {}, "New token"), tokenForm(projects)),
  ],
};

/** Whose token it is, if not the reader's. An owner sees those of all people. @param {Token} token @param {AccountPage["people"]} people @param {Me | null} me */
const holder = ({ user_id }, people, me) =>
  user_id === me?.user.id ? null : (people.find(({ id }) => id === user_id)?.name ?? "another person");

/** @param {Token} token @param {{projects: Project[], isOwn: boolean, of: string | null}} known */
const row = (token, { projects, isOwn, of }) =>
  listRow(
    token.id,
    [
      h("strong", {}, token.name),
      detail(
        of !== null && `Of ${of} · `,
        token.project_id === null ? "Whole account" : `Only ${nameOf(token.project_id, projects)}`,
        " · last used ",
        time(token.last_used_at),
        " · ",
        token.expires_at === null ? "does not expire" : ["expires ", time(token.expires_at)],
      ),
    ],
    {
      states: [
        token.origin !== "user" &&
          tag(`made for a ${token.origin === "trigger" ? "trigger's session" : "session"}`),
        isOwn && tag("this browser"),
      ],
      actions: [
        button("revoke-token", "Revoke", {
          class: "plain",
          "data-token": token.id,
          "data-title": token.name,
          "data-own": isOwn ? "yes" : null,
          "aria-label": `Revoke ${token.name}`,
        }),
      ],
    },
  );

/** @param {string} id @param {Project[]} projects */
const nameOf = (id, projects) => projects.find((project) => project.id === id)?.name ?? "one project";

/** @param {Project[]} projects */
const tokenForm = (projects) =>
  formView({
    action: "make-token",
    submit: "Make the token",
    sending: "Making…",
    fields: [
      { name: "name", label: "Name", hint: "Who or what uses it, for example `laptop`.", required: true },
      ...grantFields(projects),
    ],
  });

/** What a token reaches, and until when. @param {Project[]} projects @returns {import("../elements/forms.js").FieldView[]} */
export const grantFields = (projects) => [
  {
    name: "project_id",
    label: "Reaches",
    options: [
      ["", "The whole account"],
      ...projects.map(({ id, name }) => /** @type {[string, string]} */ ([id, `Only ${name}`])),
    ],
  },
  {
    name: "days",
    label: "Expires",
    value: "90",
    options: [
      ["7", "In 7 days"],
      ["90", "In 90 days"],
      ["365", "In a year"],
      ["", "Never"],
    ],
  },
];

/** The same for the API. @param {Record<string, string>} typed */
export const grantOf = ({ project_id = "", days = "" }) => ({
  ...(project_id !== "" && { project_id }),
  ...(days !== "" && { expires_at: new Date(now() + Number(days) * DAY_MS).toISOString() }),
});

/** Shows a new token, once. @param {string} name @param {string} token */
export const showToken = (name, token) =>
  tell({
    title: `The token ${name}`,
    text: "Copy it now. The service does not show it again.",
    secret: token,
  });

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const accountForms = {
  "make-token": async ({ name = "", ...typed }, _input, page) => {
    const { token } = await post("/v1/tokens", { name, ...grantOf(typed) });
    showToken(name, token);
    page.refresh();
  },
};
