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
      "The service printed it at its first start. A one-time link signs in without it.",
    ),
    refusal !== null && h("p", { class: "refusal", role: "alert" }, refusal),
    h("button", { type: "submit", class: "primary" }, "Sign in"),
  ),
];
