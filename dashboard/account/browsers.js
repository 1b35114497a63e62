/** Where the reader is signed in, and the providers that she can add to herself. */
import { getJson, getList, remove } from "../api/api.js";
import { ask } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import { button, detail, listRow, tag, time } from "../elements/parts.js";
import { providerName } from "../frame/sign-in.js";

/** @typedef {import("../wire.d.ts").Browser} Browser */
/** @typedef {import("../wire.d.ts").Provider} Provider */
/** @typedef {import("../wire.d.ts").Identity} Identity */
/** @typedef {{browsers: Browser[], more: boolean, providers: Provider[], identities: Identity[]}} BrowsersPage */

/** The names that browsers give themselves, the special ones first: each one also claims to be an older one. */
const NAMES = ["Edg", "OPR", "Firefox", "Chrome", "Safari", "curl"];

/** @param {string | null} agent */
export const nameOf = (agent) =>
  NAMES.find((name) => agent?.includes(`${name}/`))?.replace("Edg", "Edge") ?? "Browser";

const browsers = {
  /** @param {string[]} _params @param {import("../frame/app.js").Extent} extent @returns {Promise<BrowsersPage>} */
  load: async (_params, { pages: shown }) => {
    const [{ items, more }, { providers }, { identities }] = await Promise.all([
      getList("/v1/me/browsers", "browsers", shown),
      getJson("/dashboard/providers"),
      getJson("/v1/me/identities"),
    ]);
    return { browsers: items, more, providers, identities };
  },

  title: () => "Browsers",

  /** @param {BrowsersPage} data */
  view: ({ browsers: all, more, providers, identities }) => [
    h("h1", { "data-key": "heading" }, "Browsers"),
    h(
      "p",
      { class: "quiet", "data-key": "about" },
      "These browsers are signed in as you. A browser is signed out after 8 hours without use, and after 7 days.",
    ),
    h(
      "ul",
      { class: "rows", "data-key": "browsers" },
      all.map((browser) => row(browser, providers)),
    ),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older browsers")),
    h(
      "p",
      { class: "actions", "data-key": "all" },
      button("end-browsers", "Sign out everywhere", { class: "danger" }),
    ),
    (providers.length > 0 || identities.length > 0) &&
      h(
        "section",
        { "data-key": "providers" },
        h("h2", {}, "How you sign in"),
        h("p", { class: "quiet" }, "Add a provider to sign in with it as yourself, without a token."),
        identities.length > 0 &&
          h(
            "ul",
            { class: "rows" },
            identities.map((identity) => identityRow(identity, providers)),
          ),
        h(
          "p",
          { class: "actions" },
          providers.map(({ id, label }) =>
            button("go-to-provider", `Add ${label}`, {
              "data-key": id,
              "data-provider": id,
              "data-link": "yes",
            }),
          ),
        ),
      ),
  ],
};

/** @param {Browser} browser @param {Provider[]} providers */
const row = ({ id, user_agent, address, signed_in_by, last_used_at, current }, providers) =>
  listRow(
    id,
    [
      h("strong", {}, nameOf(user_agent)),
      detail(
        address !== null && `${address} · `,
        signed_in_by === "token" ? "with an access token" : `with ${providerName(signed_in_by, providers)}`,
        " · last used ",
        time(last_used_at),
      ),
    ],
    {
      states: [current && tag("this browser")],
      actions: [
        !current &&
          button("end-browser", "Sign out", {
            class: "plain",
            "data-browser": id,
            "aria-label": `Sign out ${nameOf(user_agent)} at ${address ?? "an unknown address"}`,
          }),
      ],
    },
  );

/** @param {Identity} identity @param {Provider[]} providers */
const identityRow = ({ id, provider, issuer, subject, name, created_at, last_sign_in_at }, providers) => {
  const label = provider === null ? issuer : providerName(provider, providers);
  return listRow(
    id,
    [
      h("strong", {}, `${name} at ${label}`),
      detail(
        `${subject} · `,
        last_sign_in_at === null ? ["added ", time(created_at)] : ["last sign-in ", time(last_sign_in_at)],
      ),
    ],
    {
      states: [provider === null && tag("not set up any more")],
      actions: [
        button("remove-identity", "Remove", {
          class: "plain",
          "data-identity": id,
          "data-title": `${name} at ${label}`,
          "aria-label": `Remove ${name} at ${label}`,
        }),
      ],
    },
  );
};

/** @type {Record<string, import("../frame/actions.js").Action>} */
export const actions = {
  "end-browser": async ({ browser = "" }, page) => {
    await remove(`/v1/me/browsers/${browser}`);
    page.notice("The browser is signed out.");
    page.refresh();
  },

  "remove-identity": async ({ identity = "", title = "" }, page) => {
    const sure = await ask({
      title: `Remove ${title}?`,
      text: "It signs you in no more, and browsers that it signed in are signed out. You can add it again.",
      confirm: "Remove",
    });
    if (sure === null) return;
    await remove(`/v1/me/identities/${identity}`);
    page.notice("The sign-in is removed.");
    page.refresh();
  },

  "end-browsers": async (_input, page) => {
    const sure = await ask({
      title: "Sign out everywhere?",
      text: "All your browsers are signed out, also this one. Access tokens stay valid.",
      confirm: "Sign out",
    });
    if (sure === null) return;
    await remove("/v1/me/browsers");
    page.signedOut();
  },
};

export const pages = { browsers };
