/** Signing in at a provider: where it begins, where it leads, and how people are called. */
import * as Result from "effect/Result";
import { isMailAddress } from "../service/mail-server.ts";
import { isBlank, plainLine } from "../text.ts";

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
  /** If null, groups do not count. */
  readonly groups: OidcGroups | null;
  /** Whether an address counts as verified if the provider says nothing about it. */
  readonly trustsAddresses?: boolean;
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

/** How long a person's tokens work after a sign-in at a provider. Null without a provider: they need none. */
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
export const isInGroup = (value: unknown, names: readonly string[]): boolean => {
  const groups: readonly unknown[] = Array.isArray(value) ? value : [value];
  const allowedGroups = new Set<unknown>(names);
  return groups.some((group) => allowedGroups.has(group));
};

/** What a provider says about a person. */
export type Claims = Readonly<Record<string, unknown>>;

/** Why a person does not get in, or does not sign up, each in words for the page and the log. */
export const SIGN_IN_CAUSES = {
  not_in_a_group:
    "You are not in a group that may use this service. Ask the people who manage your groups, and sign in again.",
  groups_missing:
    "The provider did not say which groups you are in. The people who run this service must have it send the groups claim.",
  too_many_groups:
    "You are in so many groups that the provider left them out of its answer. The people who run this service must have it send only the groups that are assigned to the service.",
  email_missing: "The provider sent no address for you (claim email).",
  email_unverified: "The provider says that your address is not verified (claim email_verified).",
  email_verified_missing:
    "The provider does not say whether your address is verified (no claim email_verified). PLATFORM_OIDC_EMAIL_VERIFIED=always accepts its addresses.",
  email_verified_unreadable:
    "The provider's claim email_verified is neither true nor false, so your address does not count as verified.",
  other_domain: "Your address is of no domain whose people may sign up.",
  no_domains: "No domain is set whose people may sign up at this provider.",
  not_a_member:
    "GitHub does not show you as an active member of the organization. It also hides members if the organization does not allow this service's OAuth app.",
  no_organization: "No organization is set whose members may sign up at GitHub.",
} as const;
export type SignInCause = keyof typeof SIGN_IN_CAUSES;

/** Beyond some number of groups, a provider sends where to ask for them instead. */
const hasTooManyGroups = (claims: Claims, claim: string): boolean => {
  const { _claim_names: names, hasgroups: flag } = claims;
  const isElsewhere = typeof names === "object" && names !== null && Object.hasOwn(names, claim);
  return isElsewhere || flag === true || flag === "true";
};

/** Why the groups keep a person out. Null if they do not. */
export const groupRefusal = (claims: Claims, groups: OidcGroups | null): SignInCause | null => {
  if (groups === null || isInGroup(claims[groups.claim], groups.allowed)) return null;
  if (claims[groups.claim] !== undefined) return "not_in_a_group";
  return hasTooManyGroups(claims, groups.claim) ? "too_many_groups" : "groups_missing";
};

const TRUE = /^(?:true|1)$/i;
const FALSE = /^(?:false|0)$/i;

/**
 * Whether the provider verified the address. Some send the claim as text or number. `xms_edov` is Entra's: the address is
 * of a domain that its tenant owns.
 */
const addressRefusal = (claims: Claims, trustsAddresses: boolean): SignInCause | null => {
  const { email, email_verified: verified, xms_edov: ofOwnDomain } = claims;
  if (typeof email !== "string" || email === "") return "email_missing";
  const claim = verified ?? ofOwnDomain;
  if (claim === undefined || claim === null) return trustsAddresses ? null : "email_verified_missing";
  if (TRUE.test(String(claim))) return null;
  return FALSE.test(String(claim)) ? "email_unverified" : "email_verified_unreadable";
};

/** A value as the address of one mailbox, or null if it is not one. */
export const mailAddress = (value: unknown): string | null =>
  typeof value === "string" && isMailAddress(value) ? value : null;

/** The person's address, if the provider verified it. */
export const verifiedAddress = (claims: Claims, trustsAddresses: boolean): string | null =>
  addressRefusal(claims, trustsAddresses) === null ? mailAddress(claims["email"]) : null;

/** Why a person in the groups may not sign up. Where only groups are set, they say who does. */
export const signUpRefusal = (
  claims: Claims,
  {
    allowedDomains,
    groups,
    trustsAddresses = false,
  }: Pick<OidcSettings, "allowedDomains" | "groups" | "trustsAddresses">,
): SignInCause | null => {
  if (allowedDomains.length === 0) return groups === null ? "no_domains" : null;
  const { email } = claims;
  return (
    addressRefusal(claims, trustsAddresses) ??
    (typeof email === "string" && isOfDomain(email, allowedDomains) ? null : "other_domain")
  );
};

const NAME_MAX = 100;

/** The name of a new person: the first candidate with text, without control characters. */
export const personName = (...candidates: readonly unknown[]): string => {
  for (const candidate of candidates) {
    if (typeof candidate !== "string") continue;
    const text = plainLine(candidate);
    if (!isBlank(text)) return Array.from(text).slice(0, NAME_MAX).join("");
  }
  return "New person";
};
