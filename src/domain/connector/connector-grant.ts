/**
 * What a server gave to the service when a person signed in there for a connector, or when the service signed in as
 * itself (OAuth): the tokens, and everything that is needed to renew and revoke them.
 *
 *  G1 A grant opens for its own connector, person, origin, kind of `auth` and version only: all of them are authenticated with
 *     it. A manifest that changes one of them finds none, and a refresh token is never sent as a bearer token.
 *  G2 The server of a grant is part of it. A refresh token goes to the token endpoint of the server that issued it, whatever
 *     other metadata says later.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { type GrantKind, isClientId } from "./connector.ts";
import { ofPerson, type CredentialHolder } from "./connector-credential.ts";
import type { SecretPlace } from "../secret/secret.ts";

/** The longest token and secret. It goes into a header. */
const TOKEN_MAX_LENGTH = 16_384;
/** A token that ends within this time is renewed before it is used. */
export const RENEW_EARLY_MS = 60_000;

/** An authorization server, as its metadata describes it (RFC 8414). */
export const SignInServer = Schema.Struct({
  issuer: Schema.String,
  authorization_endpoint: Schema.optionalKey(Schema.String),
  token_endpoint: Schema.String,
  registration_endpoint: Schema.optionalKey(Schema.String),
  revocation_endpoint: Schema.optionalKey(Schema.String),
  code_challenge_methods_supported: Schema.optionalKey(Schema.Array(Schema.String)),
  token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.Array(Schema.String)),
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean),
});
export type SignInServer = typeof SignInServer.Type;

/** The service as a client of a server. */
export const OAuthClient = Schema.Struct({
  id: Schema.String,
  /** Null means a client without a secret, which PKCE protects. */
  secret: Schema.NullOr(Schema.String),
  /** It proves itself by Basic authentication without the form encoding of RFC 6749, which some servers do not undo. */
  isPlain: Schema.optionalKey(Schema.Literal(true)),
});
export type OAuthClient = typeof OAuthClient.Type;

export const Grant = Schema.Struct({
  kind: Schema.Literals(["oauth", "client_credentials"]),
  server: SignInServer,
  client: OAuthClient,
  /** For which the tokens are issued (RFC 8707). */
  resource: Schema.String,
  scope: Schema.NullOr(Schema.String),
  accessToken: Schema.String,
  /** Null if the server gives none. */
  refreshToken: Schema.NullOr(Schema.String),
  /** When the access token ends, in ms since the epoch. Null if the server does not say. */
  expiresAt: Schema.NullOr(Schema.Finite),
});
export type Grant = typeof Grant.Type;

/** A sign-in that a person began, and everything that its end must find again. */
export const PendingSignIn = Schema.Struct({
  /** Where her browser goes. */
  address: Schema.String,
  state: Schema.String,
  /** Of PKCE. */
  verifier: Schema.String,
  server: SignInServer,
  client: OAuthClient,
  resource: Schema.String,
  scope: Schema.NullOr(Schema.String),
});
export type PendingSignIn = typeof PendingSignIn.Type;

/** Where a grant is sealed (G1). No origin has a space, so no two places are equal. */
export const grantPlace = (
  place: CredentialHolder & {
    readonly origin: string;
    readonly kind: GrantKind;
    readonly version: number;
  },
): SecretPlace => ({
  projectId: place.projectId,
  name: `connector-grant ${place.slug} ${place.origin} ${place.kind}${ofPerson(place.personId)}`,
  version: place.version,
});

/** Where a sign-in that is under way is sealed. */
export const flowPlace = (place: {
  readonly projectId: string;
  readonly slug: string;
  readonly origin: string;
  readonly stateHash: string;
}): SecretPlace => ({
  projectId: place.projectId,
  name: `connector-flow ${place.slug} ${place.origin} ${place.stateHash}`,
  version: 1,
});

const reading = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema));
  return (text: string): A | null => {
    const read = decode(text);
    return Result.isSuccess(read) ? read.success : null;
  };
};

/** Each reads what was sealed. Null if it is something else. */
export const readGrant = reading(Grant);
export const readPending = reading(PendingSignIn);
export const readClient = reading(OAuthClient);

/** Everything of a grant that no answer, log or row may show. */
export const grantSecrets = ({ accessToken, refreshToken, client }: Grant): readonly string[] =>
  [accessToken, refreshToken, client.secret].filter((secret) => secret !== null);

/** Whether a text can be the value of a header, as a token or a client's secret is. */
export const isToken = (text: string): boolean => text.length <= TOKEN_MAX_LENGTH && /^[!-~]+$/.test(text);

/** @returns null for the id and secret of a valid client, otherwise the field and what is wrong with it. */
export const checkClient = (client: {
  readonly id: string | null;
  readonly secret: string;
}): readonly ["client_id" | "value", string] | null => {
  if (client.id === null)
    return ["client_id", "is required, because the manifest names no client_id for this connector"];
  if (!isClientId(client.id)) return ["client_id", "must have 1 to 500 visible ASCII characters"];
  return isToken(client.secret) && client.secret.length >= 8
    ? null
    : ["value", "must be the client's secret: at least 8 visible ASCII characters without spaces"];
};

/** Whether the access token must be renewed before it is used at this instant. */
export const mustRenew = ({ expiresAt }: Pick<Grant, "expiresAt">, now: number): boolean =>
  expiresAt !== null && expiresAt - now <= RENEW_EARLY_MS;
