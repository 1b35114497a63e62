/**
 * An OpenID Connect provider. openid-client checks issuer, audience, nonce, times and signature of the ID token, and the
 * `iss` of the answer if the provider announces it.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
} from "openid-client";
import {
  groupRefusal,
  personName,
  signUpRefusal,
  verifiedAddress,
  type Claims,
  type OidcGroups,
  type OidcSettings,
} from "../domain/person/sign-in.ts";
import {
  ANSWER_SECONDS,
  AnswerRefused,
  asking,
  authorizationUrl,
  isClientRefused,
  sendRequest,
  tokensFor,
} from "./client.ts";
import type { ProvidedPerson, SignInProvider } from "./port.ts";

export interface OidcOptions extends Pick<
  OidcSettings,
  "issuer" | "clientId" | "allowedDomains" | "trustsAddresses"
> {
  readonly clientSecret: string;
  readonly groups?: OidcGroups | null;
}

/** How long a discovery document counts: providers change their endpoints seldom. */
const DISCOVERED_MS = 60 * 60 * 1000;

/** The ways of the client secret to the token endpoint. HTTP Basic is the standard's default. */
const CLIENT_AUTH = { client_secret_basic: ClientSecretBasic, client_secret_post: ClientSecretPost } as const;
type ClientAuthMethod = keyof typeof CLIENT_AUTH;
const METHODS = Object.keys(CLIENT_AUTH) as readonly ClientAuthMethod[];

/** A provider, with the ways that it announces for the secret. The first one is used until the provider refuses it. */
interface Discovered {
  readonly configuration: Configuration;
  readonly methods: ClientAuthMethod[];
}

const discover = async ({ issuer, clientId, clientSecret }: OidcOptions): Promise<Discovered> => {
  const methods: ClientAuthMethod[] = [...METHODS];
  const authenticate: ClientAuth = (...request) =>
    CLIENT_AUTH[methods[0] ?? "client_secret_basic"](clientSecret)(...request);
  const configuration = await discovery(new URL(issuer), clientId, undefined, authenticate, {
    timeout: ANSWER_SECONDS,
    [customFetch]: sendRequest,
    // Without this, an ID token that comes straight from the provider counts without a look at its signature.
    execute: [enableNonRepudiationChecks, ...(issuer.startsWith("http:") ? [allowInsecureRequests] : [])],
  });
  const { token_endpoint_auth_methods_supported: announced } = configuration.serverMetadata();
  const candidates = METHODS.filter((method) => (announced ?? METHODS.slice(0, 1)).includes(method));
  // A provider that announces neither may take both.
  if (candidates.length > 0) methods.splice(0, methods.length, ...candidates);
  return { configuration, methods };
};

/** A provider that announces both ways may know this client by one of them. A refused client does not use up the code. */
const withClientAuth = async <A>(methods: ClientAuthMethod[], ask: () => Promise<A>): Promise<A> => {
  try {
    return await ask();
  } catch (error) {
    const [refused, next] = methods;
    if (refused === undefined || next === undefined || !isClientRefused(error)) throw error;
    methods.reverse();
    return ask();
  }
};

/** The provider's claims about a person. Many providers have name and address only at their user info endpoint. */
const readClaims = async (
  configuration: Configuration,
  tokens: Awaited<ReturnType<typeof tokensFor>>,
  { groups = null }: OidcOptions,
): Promise<Claims & { readonly sub: string }> => {
  const claims = tokens.claims();
  if (claims === undefined) throw new AnswerRefused("the answer has no ID token");
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  const hasGroups = groups === null || claims[groups.claim] !== undefined;
  const isWhole = hasGroups && typeof claims["email"] === "string" && typeof claims["name"] === "string";
  if (isWhole && claims["email_verified"] !== undefined) return claims;
  const userInfo: Promise<Claims> = fetchUserInfo(configuration, tokens.access_token, claims.sub);
  // A person with an identity here gets in without a verified address.
  const info = await (isWhole ? userInfo.catch((): Claims => ({})) : userInfo);
  // The ID token is signed, the user info is not. An address and its verification come from the same of the two.
  const { email } = claims;
  const isOfInfo = email === undefined || (claims["email_verified"] === undefined && info["email"] === email);
  const source = isOfInfo ? info : claims;
  return {
    ...info,
    ...claims,
    email: source["email"],
    email_verified: source["email_verified"],
    sub: claims.sub,
  };
};

const toPerson = (
  { issuer, groups = null, ...options }: OidcOptions,
  claims: Claims & { readonly sub: string },
): ProvidedPerson => {
  const entryRefusal = groupRefusal(claims, groups);
  return {
    issuer,
    subject: claims.sub,
    name: personName(claims["name"], claims["preferred_username"], claims["email"]),
    email: verifiedAddress(claims, options.trustsAddresses ?? false),
    entryRefusal,
    signUpRefusal: entryRefusal ?? signUpRefusal(claims, { ...options, groups }),
  };
};

/** Some providers give the groups only if a scope of the same name is asked for, and announce it. */
const scopeFor = (configuration: Configuration, groups: OidcGroups | null): string => {
  const scopes = configuration.serverMetadata().scopes_supported ?? [];
  const own = groups !== null && scopes.includes(groups.claim) ? [groups.claim] : [];
  return ["openid", "profile", "email", ...own].join(" ");
};

export const oidcProvider = (options: OidcOptions): SignInProvider => {
  const { groups = null } = options;
  let cached: (Discovered & { readonly until: number }) | null = null;
  const currentConfiguration = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    if (cached === null || cached.until <= now) {
      cached = { ...(yield* asking(() => discover(options))), until: now + DISCOVERED_MS };
    }
    return cached;
  });
  return {
    id: "oidc",
    issuer: options.issuer,
    label: new URL(options.issuer).host,
    begin: (secrets, redirectUri) =>
      Effect.flatMap(currentConfiguration, ({ configuration }) =>
        asking(() =>
          authorizationUrl(configuration, secrets, {
            redirect_uri: redirectUri,
            scope: scopeFor(configuration, groups),
            nonce: secrets.nonce,
          }),
        ),
      ),
    finish: (callback, secrets) =>
      Effect.flatMap(currentConfiguration, ({ configuration, methods }) =>
        asking(async () => {
          const checks = {
            pkceCodeVerifier: secrets.verifier,
            expectedState: secrets.state,
            expectedNonce: secrets.nonce,
            idTokenExpected: true,
          };
          const tokens = await withClientAuth(methods, () => tokensFor(configuration, callback, checks));
          return toPerson(options, await readClaims(configuration, tokens, options));
        }),
      ),
  };
};
