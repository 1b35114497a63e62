/**
 * The adapter of src/connectors/sign-in/port.ts: the code flow with PKCE, refresh, client credentials and revocation by openid-client, over
 * requests of our own (asking.ts).
 */
import type { GrantKind } from "../domain/connector/connector.ts";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientError,
  clientCredentialsGrant,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  customFetch,
  None,
  refreshTokenGrant,
  ResponseBodyError,
  tokenRevocation,
  WWWAuthenticateChallengeError,
  type ClientAuth,
  type CustomFetchOptions,
  type TokenEndpointResponse,
} from "openid-client";
import {
  isToken,
  type Grant,
  type OAuthClient,
  type PendingSignIn,
  type SignInServer,
} from "../domain/connector/connector-grant.ts";
import { AskFault, makeAsk, type Ask, type Asking } from "./asking.ts";
import { authMethod, discover, register, SignInRefusal } from "./sign-in-discovery.ts";
import type { NewSignIn, SignInFault, SignIns } from "./sign-in/port.ts";
import { clientOptions } from "./wire.ts";
import { openClient } from "../ground/net/client.ts";

/** OAuth errors after which trying again helps. */
const TEMPORARY = new Set(["temporarily_unavailable", "server_error", "slow_down"]);

/** A status or a body that something in front of the server may have sent. */
const NO_ANSWERS = new Set([
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
]);

/** It may quote what was sent, and is cut after its secrets are masked (services/told.ts). */
const quoteError = (error: string, description: string | undefined): string =>
  description === undefined ? error : `${error}: ${description}`;

/** The first AskFault or refusal below an error: the library wraps what its `fetch` throws. */
const own = (error: unknown): AskFault | SignInRefusal | null => {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof AskFault || at instanceof SignInRefusal) return at;
  return null;
};

const fault = (kind: SignInFault["kind"], why: string): SignInFault => ({ _tag: "SignInFault", kind, why });

/** V3. The library's messages name fields, never their values. An OAuth error is the server's own text. */
const toFault = (error: unknown, host: string): SignInFault => {
  const cause = own(error);
  if (cause instanceof SignInRefusal) return fault(cause.kind, cause.message);
  if (cause instanceof AskFault) return fault("unreachable", cause.message);
  if (error instanceof AuthorizationResponseError)
    return fault("denied", `${host} says: ${quoteError(error.error, error.error_description)}`);
  if (error instanceof ResponseBodyError) {
    const isTemporary = TEMPORARY.has(error.error) || error.status === 429;
    const why = `${host} says: ${quoteError(error.error, error.error_description)}`;
    return fault(isTemporary ? "unreachable" : "refused", why);
  }
  if (error instanceof WWWAuthenticateChallengeError)
    return fault("refused", `${host} does not accept the client (status ${error.status})`);
  if (error instanceof ClientError && NO_ANSWERS.has(error.code ?? ""))
    return fault("unreachable", `${host} answered with something that is no answer of the protocol`);
  return fault("refused", `${host} gave an answer that does not fit this sign-in`);
};

const asking = <A>(server: string, ask: () => Promise<A>): Effect.Effect<A, SignInFault> =>
  Effect.tryPromise({ try: ask, catch: (error) => toFault(error, new URL(server).host) });

const bodyText = (body: CustomFetchOptions["body"]): string | null => {
  if (typeof body === "string") return body;
  return body instanceof URLSearchParams ? body.toString() : null;
};

/** Basic authentication as RFC 7617 has it. The id and the secret stay as they are. */
const clientSecretPlain =
  (secret: string): ClientAuth =>
  (...[, { client_id: id }, , headers]: Parameters<ClientAuth>) =>
    headers.set("authorization", `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`);

const clientAuthentication = (server: SignInServer, { secret, isPlain }: OAuthClient): ClientAuth => {
  if (secret === null) return None();
  if (isPlain === true) return clientSecretPlain(secret);
  return authMethod(server.token_endpoint_auth_methods_supported) === "client_secret_post"
    ? ClientSecretPost(secret)
    : ClientSecretBasic(secret);
};

const makeConfiguration = (ask: Ask, server: SignInServer, client: OAuthClient): Configuration => {
  const { code_challenge_methods_supported: _, token_endpoint_auth_methods_supported: __, ...known } = server;
  const configuration = new Configuration(known, client.id, undefined, clientAuthentication(server, client));
  configuration[customFetch] = (url, { method, headers, body }) =>
    ask(url, { method, headers, body: bodyText(body) });
  // `ask` refuses plain http, except for hosts that the operator allows.
  allowInsecureRequests(configuration);
  return configuration;
};

const isAddress = (text: string): boolean => ["https:", "http:"].includes(URL.parse(text)?.protocol ?? "");

interface OwnSide {
  /** Whether the operator allows the host inside the network. */
  readonly isInside: (url: string) => boolean;
  /** What a person reads on the page of a server at which the service registers itself. */
  readonly clientName: string;
}

const begin = async (
  ask: Ask,
  { isInside, clientName }: OwnSide,
  wish: NewSignIn,
): Promise<PendingSignIn> => {
  const { server, resource, scope: challenged } = await discover(ask, wish);
  const { host } = new URL(server.issuer);
  const address = server.authorization_endpoint;
  if (address === undefined || !isAddress(address))
    throw new SignInRefusal("unsupported", `${host} has no page to sign in`);
  if (new URL(address).protocol === "http:" && !isInside(address))
    throw new SignInRefusal("refused", `The page to sign in at ${host} is not https`);
  if (server.code_challenge_methods_supported?.includes("S256") !== true)
    throw new SignInRefusal("unsupported", `${host} does not offer PKCE with S256`);
  const scope = wish.scope ?? challenged;
  const registerClient = () => register(ask, server, { clientName, redirectUri: wish.redirectUri, scope });
  const client = wish.client ?? {
    ...(await registerClient()),
    ...(wish.isPlain && { isPlain: true as const }),
  };
  const url = buildAuthorizationUrl(makeConfiguration(ask, server, client), {
    redirect_uri: wish.redirectUri,
    state: wish.state,
    code_challenge: await calculatePKCECodeChallenge(wish.verifier),
    code_challenge_method: "S256",
    resource,
    ...(scope !== null && { scope }),
  });
  const { state, verifier } = wish;
  return { address: url.href, state, verifier, server, client, resource, scope };
};

type Granted = Omit<Grant, "accessToken" | "refreshToken" | "expiresAt">;

/** The grant that a token endpoint's answer makes. A token that is not rotated stays. */
const makeGrant = (
  granted: Granted,
  tokens: TokenEndpointResponse,
  { now, refreshToken }: { readonly now: number; readonly refreshToken: string | null },
): Grant => {
  const { access_token: accessToken, refresh_token: rotated, expires_in: seconds, scope } = tokens;
  const { host } = new URL(granted.server.issuer);
  if (tokens.token_type !== "bearer")
    throw new SignInRefusal("unsupported", `${host} gives tokens of a kind that is not supported`);
  if (!isToken(accessToken) || (rotated !== undefined && !isToken(rotated)))
    throw new SignInRefusal("refused", `${host} gives a token that cannot be sent`);
  return {
    ...granted,
    scope: scope ?? granted.scope,
    accessToken,
    refreshToken: rotated ?? refreshToken,
    expiresAt: seconds === undefined ? null : now + seconds * 1000,
  };
};

const clientToken = async (ask: Ask, granted: Granted, now: number): Promise<Grant> => {
  const { server, client, resource, scope } = granted;
  const tokens = await clientCredentialsGrant(makeConfiguration(ask, server, client), {
    resource,
    ...(scope !== null && { scope }),
  });
  return makeGrant(granted, tokens, { now, refreshToken: null });
};

const refreshGrant = async (ask: Ask, grant: Grant, now: number): Promise<Grant> => {
  const { server, client, resource, refreshToken } = grant;
  if (refreshToken === null)
    throw new SignInRefusal("refused", `${new URL(server.issuer).host} gave no way to renew the token`);
  const configuration = makeConfiguration(ask, server, client);
  const tokens = await refreshTokenGrant(configuration, refreshToken, { resource });
  return makeGrant(grant, tokens, { now, refreshToken });
};

const finishSignIn = async (
  ask: Ask,
  pending: PendingSignIn,
  callback: URL,
): Promise<TokenEndpointResponse> => {
  const { server, client, resource, state, verifier } = pending;
  const checks = { expectedState: state, pkceCodeVerifier: verifier };
  return authorizationCodeGrant(makeConfiguration(ask, server, client), callback, checks, { resource });
};

/** The refresh token first: with it, many servers revoke all tokens of the grant. */
const revokeGrant = async (ask: Ask, { server, client, accessToken, refreshToken }: Grant): Promise<void> => {
  if (server.revocation_endpoint === undefined) return;
  const configuration = makeConfiguration(ask, server, client);
  if (refreshToken !== null)
    await tokenRevocation(configuration, refreshToken, { token_type_hint: "refresh_token" });
  await tokenRevocation(configuration, accessToken, { token_type_hint: "access_token" });
};

const withTime = <A>(server: string, ask: (now: number) => Promise<A>): Effect.Effect<A, SignInFault> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => asking(server, () => ask(now)));

const signInsOver = (ask: Ask, ownSide: OwnSide): SignIns => ({
  begin: (wish) => asking(wish.url, () => begin(ask, ownSide, wish)),
  finish: (pending, callback) =>
    withTime(pending.server.issuer, async (now) => {
      const { server, client, resource, scope } = pending;
      const grantFields = { kind: "oauth" as GrantKind, server, client, resource, scope };
      return makeGrant(grantFields, await finishSignIn(ask, pending, callback), { now, refreshToken: null });
    }),
  fetchToken: ({ url, kind: place, issuer, scope, client }) =>
    withTime(url, async (now) => {
      const { server, resource, scope: challenged } = await discover(ask, { url, kind: place, issuer });
      const kind = "client_credentials" as const;
      return clientToken(ask, { kind, server, client, resource, scope: scope ?? challenged }, now);
    }),
  renew: (grant) =>
    withTime(grant.server.issuer, (now) =>
      grant.kind === "oauth" ? refreshGrant(ask, grant, now) : clientToken(ask, grant, now),
    ),
  revoke: (grant) => asking(grant.server.issuer, () => revokeGrant(ask, grant)),
});

/** @param allowHosts hosts that may have a private address, or plain http. */
export const makeSignIns = (
  allowHosts: readonly string[],
  { clientName, ...options }: Pick<OwnSide, "clientName"> & Pick<Asking, "answerMs">,
): Effect.Effect<SignIns, never, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* openClient(clientOptions(allowHosts));
    const isInside = (url: string): boolean => client.isTrusted(new URL(url).hostname);
    return signInsOver(makeAsk({ client, ...options }), { isInside, clientName });
  });
