/** Settings of sign-in providers. */
import { DAY, define, duration } from "./setting.ts";

export const SIGN_IN_SETTINGS = define({
  PLATFORM_OIDC_ISSUER: {
    group: "Sign-in",
    kind: "structured",
    fallback: null,
    expects: "https URL, or http on loopback, without query and fragment",
    shown: "off",
    about:
      "The OpenID Connect provider where people [sign in](sign-in.md), exactly as its discovery document names it. " +
      "Needs the client id and the secret.",
  },
  PLATFORM_OIDC_CLIENT_ID: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    about: "The service's client id at the OpenID Connect provider.",
  },
  PLATFORM_OIDC_CLIENT_SECRET_FILE: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    about: "The file with the client secret. It is read at the start.",
  },
  PLATFORM_OIDC_ALLOWED_DOMAINS: {
    group: "Sign-in",
    kind: "list",
    separator: ",",
    about:
      "Domains whose people may sign up, if `PLATFORM_SIGN_UP` is `allowed`. The provider must have verified the e-mail address.",
  },
  PLATFORM_OIDC_EMAIL_VERIFIED: {
    group: "Sign-in",
    kind: "choice",
    values: ["claim", "always"],
    about:
      "Whether an e-mail address counts as verified: by the provider's claim `email_verified`, or `always` if the provider sends no such claim.",
  },
  PLATFORM_OIDC_GROUPS_CLAIM: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    shown: "off",
    about:
      "The claim with a person's [groups](sign-in.md#groups) at the OpenID Connect provider, for example `groups`. Needs the allowed groups.",
  },
  PLATFORM_OIDC_ALLOWED_GROUPS: {
    group: "Sign-in",
    kind: "list",
    separator: ",",
    about:
      "The only groups whose people may sign in at the OpenID Connect provider, also with an invitation. Needs the claim.",
  },
  PLATFORM_GITHUB_LOGIN_CLIENT_ID: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    shown: "off",
    about: "The client id of an OAuth app at GitHub. Needs the secret.",
  },
  PLATFORM_GITHUB_LOGIN_SECRET_FILE: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    about: "The file with the OAuth app's secret. It is read at the start.",
  },
  PLATFORM_GITHUB_LOGIN_ORG: {
    group: "Sign-in",
    kind: "text",
    fallback: null,
    about: "The organization at GitHub whose members may sign up, if `PLATFORM_SIGN_UP` is `allowed`.",
  },
  PLATFORM_TOKEN_SIGN_IN_MS: duration(
    "Sign-in",
    30 * DAY,
    "With a provider, a person's tokens work this long after her last [sign-in](sign-in.md#tokens-need-a-sign-in) there. The default is short enough that " +
      "people who left the provider lose their access, and long enough that people seldom notice it.",
  ),
  PLATFORM_SIGN_UP: {
    group: "Sign-in",
    kind: "choice",
    values: ["invited", "allowed"],
    about:
      "Whether a person needs an invitation. With `allowed`, people of the allowed domains and members of the organization become " +
      "members of the first account when they sign in.",
  },
});
