/** Signing in at a provider: where it begins, where it leads, and how people are called. */
import * as Result from "effect/Result";

export const PROVIDERS = ["oidc", "github"] as const;
export type ProviderId = (typeof PROVIDERS)[number];

/** What the operator set for a provider. */
export interface OidcSettings {
  /** As the provider spells it. */
  readonly issuer: string;
  readonly clientId: string;
  readonly secretFile: string;
  /** In lower case. */
  readonly allowedDomains: readonly string[];
  /** Null: groups do not count. */
  readonly groups: OidcGroups | null;
}
/** Who may sign in, by what the provider says about a person's groups. */
export interface OidcGroups {
  /** The name of the claim. */
  readonly claim: string;
  readonly allowed: readonly string[];
}
export interface GithubSettings {
  readonly clientId: string;
  readonly secretFile: string;
  readonly organization: string | null;
}
export interface SignInSettings {
  readonly oidc: OidcSettings | null;
  readonly github: GithubSettings | null;
  readonly signUp: "invited" | "allowed";
  /** How long a person's tokens work after a sign-in. */
  readonly tokenSignInMs: number;
}

/** How long a person's tokens work after a sign-in at a provider. Null: without a provider they need none. */
export const neededSignInMs = ({
  oidc,
  github,
  tokenSignInMs,
}: Pick<SignInSettings, "oidc" | "github" | "tokenSignInMs">): number | null =>
  oidc === null && github === null ? null : tokenSignInMs;

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Reads PLATFORM_OIDC_ISSUER. Keeps the spelling: a provider's tokens name it exactly so. */
export const parseIssuer = (text: string): Result.Result<string, string> => {
  const url = URL.parse(text);
  const isSecure = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.has(url.hostname));
  return url !== null && isSecure && url.search === "" && url.hash === "" && url.username === ""
    ? Result.succeed(text)
    : Result.fail("an https URL, or http on loopback, without query and fragment");
};

const RETURN_MAX = 500;
/** The page is one document. Its paths are in the fragment, which never leads to another origin. */
const PATH_OF_THE_PAGE = /^\/#\/[\w\-./?=&%,:~]*$/;

/** Where the browser goes after a sign-in: a path of this page, and `/` for anything else (threats.md T13). */
export const returnPath = (wish: string | null | undefined): string =>
  typeof wish === "string" && wish.length <= RETURN_MAX && PATH_OF_THE_PAGE.test(wish) ? wish : "/";

/** Whether the e-mail address is of one of the domains. */
export const isOfDomain = (email: string, domains: readonly string[]): boolean => {
  const at = email.lastIndexOf("@");
  return at > 0 && domains.includes(email.slice(at + 1).toLowerCase());
};

/**
 * Whether the value of a groups claim has one of the groups. Groups are compared exactly. Some providers send the only group as text.
 * A person without the claim is in no group.
 */
export const isInGroup = (value: unknown, allowed: readonly string[]): boolean => {
  const groups: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wanted = new Set<unknown>(allowed);
  return groups.some((group) => wanted.has(group));
};

const NAME_MAX = 100;

/** The name of a new person: the first candidate with text, without control characters. */
export const personName = (...candidates: readonly unknown[]): string => {
  for (const candidate of candidates) {
    if (typeof candidate !== "string") continue;
    const text = candidate.replaceAll(/\p{C}+/gu, " ").trim();
    if (text !== "") return Array.from(text).slice(0, NAME_MAX).join("");
  }
  return "New person";
};
