/**
 * Credentials of connectors: sealed as project secrets are, bound to the origin for which a person stored them, and
 * never shown.
 *
 *  R1 A credential opens for its own connector, origin, kind and person only: all are authenticated with the value. So a
 *     manifest that moves a connector to another origin finds no credential there, and a row that is copied to another
 *     person does not open.
 *  R2 A server's answers are masked: the credential, its encoded forms, and the header that carries it.
 */
import type { ConnectorAuth, GrantKind } from "./connector.ts";
import { Redactor } from "../secret/redactor.ts";
import { checkSecretValue, type SecretPlace } from "../secret/secret.ts";

/** A shorter credential could occur in a result by chance, and masking it would harm the result. */
export const CREDENTIAL_MIN_LENGTH = 8;
const CREDENTIAL_MAX_LENGTH = 8192;

/** @returns null for a valid credential: one line of visible ASCII, because it goes into a header or a URL. */
export const checkConnectorCredential = ({ kind }: ConnectorAuth, value: string): string | null => {
  if (kind === "basic" && !/^[^:]+:.+$/.test(value))
    return 'must be user:password, because the auth of the connector is "basic"';
  if (value.length < CREDENTIAL_MIN_LENGTH)
    return `must have at least ${CREDENTIAL_MIN_LENGTH} characters, so that it can be masked in results`;
  if (value.length > CREDENTIAL_MAX_LENGTH) return `must have at most ${CREDENTIAL_MAX_LENGTH} characters`;
  if (!/^[ -~]+$/.test(value) || value.trim() !== value || checkSecretValue(value) !== null)
    return "must be one line of ASCII characters, without spaces at its ends";
  return null;
};

/** Whose credential of a connector: the project's, or one person's own. */
export interface CredentialHolder {
  readonly projectId: string;
  readonly slug: string;
  /** Null means the project's. */
  readonly personId: string | null;
}

/** The end of the name of a place that is a person's own. It keeps one person's credential from opening for another. */
export const ofPerson = (personId: string | null): string => (personId === null ? "" : ` of ${personId}`);

/** The origin of a connector's URL. */
export const urlOrigin = (url: string): string => new URL(url).origin;

/**
 * R1. The binding of a connector's credential, as people read it: the origin of its URL. Where the manifest names the authorization
 * server, that too: a client's secret and a code are sent there.
 */
export const boundTo = ({ url, auth }: { readonly url: string; readonly auth: ConnectorAuth }): string =>
  "issuer" in auth && auth.issuer !== null ? `${urlOrigin(url)} (sign-in at ${auth.issuer})` : urlOrigin(url);

/** The kinds of stored credentials: a value that is sent to the server, or the client of an OAuth server (connector-grant.ts). */
export type CredentialKind = "value" | GrantKind;

/** The kind that a connector needs. */
export const credentialKind = ({ kind }: ConnectorAuth): CredentialKind =>
  kind === "oauth" || kind === "client_credentials" ? kind : "value";

/** R1. No project secret can have a name with spaces, so the two kinds of places never meet. */
export const credentialPlace = (
  place: CredentialHolder & {
    readonly origin: string;
    readonly kind: CredentialKind;
    readonly version: number;
  },
): SecretPlace => ({
  projectId: place.projectId,
  name:
    (place.kind === "value"
      ? `connector ${place.slug} ${place.origin}`
      : `connector-client ${place.slug} ${place.origin} ${place.kind}`) + ofPerson(place.personId),
  version: place.version,
});

/** The headers and the URL of a request that carries the credential. */
export const authorizeRequest = (
  url: string,
  auth: ConnectorAuth,
  credential: string | null,
): { readonly url: string; readonly headers: Readonly<Record<string, string>> } => {
  if (credential === null || auth.kind === "none") return { url, headers: {} };
  if (auth.kind === "basic")
    return { url, headers: { authorization: `Basic ${Buffer.from(credential).toString("base64")}` } };
  if (auth.kind !== "header" && auth.kind !== "query")
    return { url, headers: { authorization: `Bearer ${credential}` } };
  if (auth.kind === "header") return { url, headers: { [auth.name.toLowerCase()]: credential } };
  const target = new URL(url);
  target.searchParams.set(auth.name, credential);
  return { url: target.href, headers: {} };
};

/** The secret parts of a stored value: of `user:password` the password, too. */
export const secretsOfValue = ({ kind }: ConnectorAuth, value: string): readonly string[] =>
  kind === "basic" ? [value, value.slice(value.indexOf(":") + 1)] : [value];

/** R2. @param secrets everything that was sent to the server, or that belongs to it. */
export const credentialMask = (secrets: readonly string[]): Redactor =>
  new Redactor(secrets.flatMap(encodedForms));

const encodedForms = (credential: string): readonly string[] => {
  const bytes = Buffer.from(credential);
  const inner = [0, 1, 2].map((offset) => innerBase64(bytes, offset));
  const base64 = [bytes.toString("base64"), bytes.toString("base64url"), ...inner];
  const safe = inner.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"));
  const hex = bytes.toString("hex");
  const form = new URLSearchParams({ v: credential }).toString().slice("v=".length);
  return [
    credential,
    form,
    ...base64,
    ...safe,
    hex,
    hex.toUpperCase(),
    [...credential].toReversed().join(""),
  ];
};

/**
 * The part of the credential's base64 that stays the same when `offset` bytes (of three) stand before it, as in
 * `Bearer <credential>` or `user:<credential>`.
 */
const innerBase64 = (bytes: Buffer, offset: number): string => {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]);
  const wholeTriples = whole.subarray(0, whole.length - (whole.length % 3));
  return wholeTriples.toString("base64").slice(offset === 0 ? 0 : 4);
};

/**
 * Masks every text in JSON, also the names of fields. The structure stays as it is.
 *
 * @param value at most `DEPTH_LIMIT` levels deep (catalogue.ts).
 */
export const maskJson = (mask: Redactor, value: unknown): unknown => {
  if (typeof value === "string") return mask.redact(value);
  if (Array.isArray(value)) return value.map((inner) => maskJson(mask, inner));
  if (typeof value !== "object" || value === null) return value;
  // fromEntries defines fields, so that `__proto__` stays a field.
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [mask.redact(name), maskJson(mask, inner)]),
  );
};
