/** The page for readers who are not signed in. */
import { h } from "./dom.js";

/** @param {string | null} refusal why the last attempt failed */
export const signInView = (refusal) => [
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
      "The service prints an access token when it starts for the first time. You can also sign in with the one-time link.",
    ),
    refusal !== null && h("p", { class: "refusal", role: "alert" }, refusal),
    h("button", { type: "submit", class: "primary" }, "Sign in"),
  ),
];
