/**
 * The stored credential of a connector, opened. It is used for the origin and the kind of `auth` for which it was stored: a
 * manifest that changes one of them has none.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { Connector } from "../domain/connector.ts";
import { credentialKind, credentialPlace, originOf } from "../domain/connector-credential.ts";
import {
  grantPlace,
  readClient,
  readGrant,
  type Grant,
  type GrantKind,
  type OAuthClient,
} from "../domain/connector-grant.ts";
import { unsealSecret } from "../domain/secret.ts";
import { ConnectorGrants, type StoredGrant } from "../store/ports/connector-grants.ts";
import { Connectors } from "../store/ports/connectors.ts";
import { Keyring } from "./keyring.ts";

/** A grant that is stored, and its tokens. */
export interface HeldGrant {
  readonly stored: StoredGrant;
  /** Null: only the client is stored yet. */
  readonly grant: Grant | null;
}

/** What a connector sends to its server. A value is what the person stored. */
export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "value"; readonly value: string }
  | { readonly kind: "grant"; readonly held: HeldGrant };

/** An opened credential, or the reason why it is missing. */
export type Opened =
  | { readonly credential: Credential; readonly missing: null }
  | { readonly credential: null; readonly missing: string };

const found = (credential: Credential): Opened => ({ credential, missing: null });
const missing = (why: string): Opened => ({ credential: null, missing: why });

const UNOPENED = "cannot be opened";

/** The stored value or client of a connector. */
const openStored = Effect.fnUntraced(function* (projectId: string, { slug, auth, url }: Connector) {
  const origin = originOf(url);
  const sealed = yield* (yield* Connectors).credential(projectId, slug);
  if (sealed === null || sealed.kind !== credentialKind(auth))
    return {
      value: null,
      missing: `The connector ${slug} has no credential. A person can store one: platform connectors set-credential ${slug}.`,
    };
  if (sealed.origin !== origin)
    return {
      value: null,
      missing: `The connector ${slug} moved to ${origin}, and its credential is for ${sealed.origin}. A person can store one for the new place.`,
    };
  const value = unsealSecret((yield* Keyring).secrets, credentialPlace(sealed), sealed.envelope);
  if (Result.isSuccess(value)) return { value: value.success, missing: null };
  return {
    value: null,
    missing: `The credential of the connector ${slug} ${UNOPENED}. A person can store it again.`,
  };
});

/** The client that an owner stored for a connector, or that the manifest names. Null: the connector has none. */
export const storedClient = Effect.fnUntraced(function* (projectId: string, connector: Connector) {
  const { auth } = connector;
  const { value } = yield* openStored(projectId, connector);
  const client = value === null ? null : readClient(value);
  const named = "clientId" in auth ? auth.clientId : null;
  // A secret is of no use to another client.
  if (client !== null && (named === null || named === client.id)) return client;
  return auth.kind === "oauth" && auth.clientId !== null
    ? ({ id: auth.clientId, secret: null } satisfies OAuthClient)
    : null;
});

/** Opens the tokens of a row. */
export const openGrant = Effect.fnUntraced(function* (stored: StoredGrant) {
  const { envelope } = stored;
  if (envelope === null) return { stored, grant: null } satisfies HeldGrant;
  const text = unsealSecret((yield* Keyring).secrets, grantPlace(stored), envelope);
  return { stored, grant: Result.isSuccess(text) ? readGrant(text.success) : null } satisfies HeldGrant;
});

/** The sentence that says how a person can repair it. */
export const remedyOf = (slug: string, kind: GrantKind): string =>
  kind === "oauth"
    ? `A person can sign in again: platform connectors authorize ${slug}.`
    : `A person can store the client's secret again: platform connectors set-credential ${slug}.`;

/** Why a grant is of no use, as a sentence with what to do. Null: it is of use. */
export const lackOf = (
  { slug, url }: Pick<Connector, "slug" | "url">,
  kind: GrantKind,
  stored: StoredGrant | null | undefined,
): string | null => {
  const origin = originOf(url);
  const isOAuth = kind === "oauth";
  if (stored === null || stored === undefined || stored.status === "removed" || stored.kind !== kind)
    return isOAuth
      ? `No person has signed in to the connector ${slug}. A person can sign in: platform connectors authorize ${slug}.`
      : `The connector ${slug} has no credential. A person can store one: platform connectors set-credential ${slug}.`;
  if (stored.origin !== origin)
    return `The connector ${slug} moved to ${origin}, and its sign-in is for ${stored.origin}. ${remedyOf(slug, kind)}`;
  return stored.status === "refused"
    ? `The sign-in of the connector ${slug} has ended: ${stored.failure ?? "refused"}. ${remedyOf(slug, kind)}`
    : null;
};

const openHeld = Effect.fnUntraced(function* (projectId: string, connector: Connector, kind: GrantKind) {
  const { slug } = connector;
  const stored = yield* (yield* ConnectorGrants).get(projectId, slug);
  const lack = lackOf(connector, kind, stored);
  if (stored === null || lack !== null) return missing(lack ?? UNOPENED);
  const held = yield* openGrant(stored);
  return held.grant === null && stored.envelope !== null
    ? missing(`The tokens of the connector ${slug} cannot be opened. ${remedyOf(slug, kind)}`)
    : found({ kind: "grant", held });
});

/** Opens the credential that a connector needs . It asks no server. */
export const openCredential = Effect.fnUntraced(function* (projectId: string, connector: Connector) {
  const kind = credentialKind(connector.auth);
  if (connector.auth.kind === "none") return found({ kind: "none" });
  if (kind !== "value") return yield* openHeld(projectId, connector, kind);
  const { value, missing: why } = yield* openStored(projectId, connector);
  return value === null ? missing(why) : found({ kind: "value", value });
});
