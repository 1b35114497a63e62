/**
 * An OpenID Connect provider. openid-client checks issuer, audience, nonce, times and signature of the ID token, and the
 * `iss` of the answer if the provider announces it.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import {
  allowInsecureRequests,
  type Configuration,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
} from "openid-client";
import { isInGroup, isOfDomain, personName, type OidcGroups } from "../domain/sign-in.ts";
import { ANSWER_SECONDS, AnswerRefused, asking, authorizationUrl, sendRequest, tokensFor } from "./client.ts";
import type { ProvidedPerson, SignInProvider } from "./port.ts";

export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly allowedDomains: readonly string[];
  readonly groups?: OidcGroups | null;
}

/** How long a discovery document counts: providers change their endpoints seldom. */
const DISCOVERED_MS = 60 * 60 * 1000;

const discover = async ({ issuer, clientId, clientSecret }: OidcOptions): Promise<Configuration> =>
  discovery(new URL(issuer), clientId, clientSecret, undefined, {
    timeout: ANSWER_SECONDS,
    [customFetch]: sendRequest,
    // Without this, an ID token that comes straight from the provider counts without a look at its signature.
    execute: [enableNonRepudiationChecks, ...(issuer.startsWith("http:") ? [allowInsecureRequests] : [])],
  });

type Claims = Readonly<Record<string, unknown>>;

/** The provider's claims about a person. Many providers have name and address only at their user info endpoint. */
const claimsOf = async (
  configuration: Configuration,
  {
    tokens,
    groups,
  }: { readonly tokens: Awaited<ReturnType<typeof tokensFor>>; readonly groups: OidcGroups | null },
): Promise<Claims & { readonly sub: string }> => {
  const claims = tokens.claims();
  if (claims === undefined) throw new AnswerRefused("the answer has no ID token");
  const hasGroups = groups === null || claims[groups.claim] !== undefined;
  const isWhole = hasGroups && typeof claims["email"] === "string" && typeof claims["name"] === "string";
  if (isWhole || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  const info: Claims = await fetchUserInfo(configuration, tokens.access_token, claims.sub);
  // The ID token is signed, the user info is not. An address and its verification come from the same of the two.
  const { email } = claims;
  const isOfInfo = email === undefined || (claims["email_verified"] === undefined && info["email"] === email);
  const verified = isOfInfo ? info : claims;
  return {
    ...info,
    ...claims,
    email: verified["email"],
    email_verified: verified["email_verified"],
    sub: claims.sub,
  };
};

const personOf = (
  { issuer, allowedDomains, groups = null }: OidcOptions,
  claims: Claims & { readonly sub: string },
) => {
  const { email } = claims;
  const isVerified = typeof email === "string" && claims["email_verified"] === true;
  const mayEnter = groups === null || isInGroup(claims[groups.claim], groups.allowed);
  const person: ProvidedPerson = {
    issuer,
    subject: claims.sub,
    name: personName(claims["name"], claims["preferred_username"], email),
    mayEnter,
    // Where only groups are set, they say who signs up.
    maySignUp:
      mayEnter &&
      (allowedDomains.length === 0 ? groups !== null : isVerified && isOfDomain(email, allowedDomains)),
  };
  return person;
};

/** Some providers give the groups only if a scope of the same name is asked for, and announce it. */
const scopeFor = (configuration: Configuration, groups: OidcGroups | null): string => {
  const scopes = configuration.serverMetadata().scopes_supported ?? [];
  const own = groups !== null && scopes.includes(groups.claim) ? [groups.claim] : [];
  return ["openid", "profile", "email", ...own].join(" ");
};

export const oidcProvider = (options: OidcOptions): SignInProvider => {
  const { groups = null } = options;
  let discovered: { readonly configuration: Configuration; readonly until: number } | null = null;
  const configured = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    if (discovered === null || discovered.until <= now) {
      const configuration = yield* asking(() => discover(options));
      discovered = { configuration, until: now + DISCOVERED_MS };
    }
    return discovered.configuration;
  });
  return {
    id: "oidc",
    issuer: options.issuer,
    label: new URL(options.issuer).host,
    begin: (secrets, redirectUri) =>
      Effect.flatMap(configured, (configuration) =>
        asking(() =>
          authorizationUrl(configuration, secrets, {
            redirect_uri: redirectUri,
            scope: scopeFor(configuration, groups),
            nonce: secrets.nonce,
          }),
        ),
      ),
    finish: (callback, secrets) =>
      Effect.flatMap(configured, (configuration) =>
        asking(async () => {
          const tokens = await tokensFor(configuration, callback, {
            pkceCodeVerifier: secrets.verifier,
            expectedState: secrets.state,
            expectedNonce: secrets.nonce,
            idTokenExpected: true,
          });
          return personOf(options, await claimsOf(configuration, { tokens, groups }));
        }),
      ),
  };
};
