/** The sign-in, for readers who are not signed in. */
import { ApiError, getJson } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import type { Provider } from "../wire.d.ts";

/** Where people can sign in, once it is known. */
let providers: Provider[] = [];

/** Asks for the providers. Without an answer the list is empty: a token always works. */
export const learnProviders = async () => {
  providers = await getJson("/dashboard/providers").then(
    (answer) => answer.providers,
    () => [],
  );
};

export const signInProviders = (): readonly Provider[] => providers;

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
  return "This one-time link was used before, or has expired. Sign in with an access token, or make a new link: the demo makes one when you press Enter in its terminal.";
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
