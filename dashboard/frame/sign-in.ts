/**
 * Pages for readers who are not signed in: the sign-in, and the link of an invitation, which shows what it grants and,
 * once accepted, the person's first token. The link's code is a secret: it leaves the address as soon as it is used.
 */
import { ApiError, getJson, join as accept, post } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import { formView } from "../elements/forms.js";
import { moment } from "../elements/format.ts";
import { button, callout, empty, facts } from "../elements/parts.ts";
import type { Me, OpenInvitation, Provider } from "../wire.d.ts";
import type { Submit } from "../elements/forms.js";

type JoinPage = { invitation: OpenInvitation | null; problem: string };

/** Where people can sign in, once it is known. */
let providers: Provider[] = [];

/** Asks for the providers. Without an answer the list is empty: a token always works. */
export const learnProviders = async () => {
  providers = await getJson("/dashboard/providers").then(
    (answer) => answer.providers,
    () => [],
  );
};

export const providerName = (wanted: string, known: readonly Provider[]) =>
  known.find(({ id }) => id === wanted)?.label ?? wanted;

/** Why an attempt failed, in the form's words. */
export const refusalOf = (error: unknown) => {
  if (error instanceof ApiError && error.status === 401)
    return "This access token is not valid, or it has expired. Check that it is complete, or ask for a new one.";
  return error instanceof Error ? error.message : String(error);
};

/** The service led here from a one-time link that does not sign in any more. @returns a sentence with the next step */
export const refusedLink = (): string | null => {
  if (new URLSearchParams(location.search).get("link") !== "refused") return null;
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
  return "This one-time link was used before, or has expired. Make a new link, or sign in with an access token.";
};

/** @param refusal why the last attempt failed */
export const signInView = (refusal: string | null) => [
  h(
    "form",
    { class: "sign-in", "data-action": "sign-in" },
    h("h1", {}, "Sign in"),
    h("label", { for: "token" }, "Access token"),
    h("input", {
      id: "token",
      name: "token",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
      placeholder: "platform_pat_…",
      "aria-describedby": "token-help",
      "aria-invalid": refusal !== null && "true",
    }),
    h(
      "p",
      { id: "token-help", class: "quiet" },
      "Does a colleague run this service? Ask an owner of the account for an invitation: its link lets you in and gives you a token. " +
        "Did you start it? It prints a token and a one-time link at its first start.",
    ),
    refusal !== null && h("p", { class: "refusal", role: "alert" }, refusal),
    h("button", { type: "submit", class: "primary" }, "Sign in"),
    providers.map(({ id, label }) =>
      h(
        "a",
        {
          class: "button",
          "data-key": id,
          href: `/dashboard/login/${id}?return=${encodeURIComponent(`/${location.hash}`)}`,
        },
        `Sign in with ${label}`,
      ),
    ),
  ),
];

const code = () => location.hash.split("/")[2] ?? "";

/** The answer about the shown link, so that it is not asked for again and again. */
let looked: (JoinPage & { code: string }) | null = null;
/** The token of the person who has just joined, as long as it is shown. */
let token: string | null = null;

export const join = {
  /** Readers who are not signed in see it, too. */
  isOpen: true,

  load: async (): Promise<JoinPage> => {
    const asked = code();
    if (looked?.code !== asked) {
      const [answer] = await Promise.all([look(asked), learnProviders()]);
      looked = { code: asked, ...answer };
    }
    return looked;
  },

  title: () => "Invitation",

  view: ({ invitation, problem }: JoinPage, me: Me | null) =>
    invitation === null
      ? [
          h("h1", { "data-key": "heading" }, "Invitation"),
          empty(
            problem,
            "If you have joined already, ",
            h("a", { href: "#/" }, "sign in with your access token"),
            ".",
          ),
        ]
      : [
          h("h1", { "data-key": "heading" }, `Join the account ${invitation.account}`),
          facts([
            ["Invited by", invitation.invited_by],
            ["Role in the account", invitation.role],
            ["Projects", projectsOf(invitation)],
            ["Valid until", moment(invitation.expires_at)],
          ]),
          me &&
            callout(
              "warn",
              h("strong", {}, `This browser is signed in as ${me.user.name}. `),
              "Accept only if the link is meant for you: it works once, makes a new person, and signs this browser in.",
            ),
          formView({
            action: "join",
            submit: "Accept the invitation",
            sending: "Joining…",
            fields: [
              {
                name: "name",
                label: "Your name",
                hint: "The people of the account see it.",
                value: invitation.name,
                required: true,
              },
            ],
          }),
          providers.length > 0 &&
            h(
              "p",
              { class: "actions", "data-key": "providers" },
              providers.map(({ id, label }) =>
                button("go-to-provider", `Join with ${label}`, {
                  "data-key": id,
                  "data-provider": id,
                  "data-invitation": code(),
                }),
              ),
            ),
        ],
};

const look = async (asked: string): Promise<JoinPage> => {
  try {
    return { invitation: await post("/dashboard/invitations/look", { code: asked }), problem: "" };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404)
      return { invitation: null, problem: error.message };
    throw error;
  }
};

const projectsOf = ({ role, projects }: OpenInvitation) => {
  if (role === "owner") return "All";
  const named = projects.map((project) => `${project.name} as ${project.role}`);
  return [...named, "those open to the whole account"].join(", ");
};

/** The first page of a new person: her token, once. */
export const joined = {
  load: async () => ({}),
  title: () => "Welcome",
  follow: () => ({
    end: () => {
      token = null;
    },
  }),
  view: () => [
    h("h1", { "data-key": "heading" }, "You have joined"),
    token !== null &&
      h(
        "section",
        { "data-key": "token" },
        h("h2", {}, "Your access token"),
        h(
          "p",
          {},
          "Keep it, for example in a password manager: you sign in with it next time. It is not shown again.",
        ),
        h(
          "p",
          { class: "copy" },
          h("code", { class: "long" }, token),
          button("copy", "Copy", { "data-text": token }),
        ),
      ),
    h(
      "p",
      { class: "actions", "data-key": "on" },
      h("a", { class: "button primary", href: "#/projects" }, "Go to the projects"),
    ),
  ],
};

export const joinForms: Record<string, Submit> = {
  join: async ({ name = "" }, _input, page) => {
    token = await accept(code(), name);
    looked = null;
    history.replaceState(null, "", "#/joined");
    page.entered();
  },
};
