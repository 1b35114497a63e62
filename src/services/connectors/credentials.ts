/**
 * The stored credential of a connector, opened.
 *
 *  V1 It is used for the origin and the kind of `auth` for which it was stored: a manifest that changes one of them has none.
 *  V2 A person's own credential is used for her alone, while she is active and works in the project.
 *  V3 The client of an OAuth server is the project's, also where each person signs in with it.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { Connector, GrantKind } from "../../domain/connector/connector.ts";
import {
  credentialKind,
  boundTo,
  credentialPlace,
  type CredentialHolder,
} from "../../domain/connector/connector-credential.ts";
import {
  grantPlace,
  readClient,
  readGrant,
  type Grant,
  type OAuthClient,
} from "../../domain/connector/connector-grant.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import { ConnectorGrants, type StoredGrant } from "../../store/ports/connectors/connector-grants.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { People } from "../../store/ports/people/people.ts";
import { Keyring } from "../keyring.ts";

/** A grant that is stored, and its tokens. */
export interface HeldGrant {
  readonly stored: StoredGrant;
  /** Null while only the client is stored. */
  readonly grant: Grant | null;
}

/** What a connector sends to its server. A value is what the person stored. */
export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "value"; readonly value: string }
  | { readonly kind: "grant"; readonly held: HeldGrant };

/** An opened credential, or the reason why it is missing. */
export type OpenedCredential =
  | { readonly credential: Credential; readonly missing: null }
  | { readonly credential: null; readonly missing: string };

const openedCredential = (credential: Credential): OpenedCredential => ({ credential, missing: null });
const missing = (why: string): OpenedCredential => ({ credential: null, missing: why });

/** Whose credential a use of the connector has. @param userId the session's person. Null if no person did. */
export const credentialHolder = (
  { slug, credential }: Pick<Connector, "slug" | "credential">,
  projectId: string,
  userId: string | null,
): CredentialHolder | null => {
  if (credential === "project") return { projectId, slug, personId: null };
  return userId === null ? null : { projectId, slug, personId: userId };
};

/** Who can repair it, as the beginning of a sentence. An agent reads it. */
const whoCan = ({ credential }: Pick<Connector, "credential">): string =>
  credential === "user" ? "The person who started this session can" : "A person can";

const UNOPENED = "cannot be opened";

const noCredential = (connector: Pick<Connector, "slug" | "credential">): string => {
  const { slug, credential } = connector;
  const what = credential === "user" ? "no credential of this person" : "no credential";
  return `The connector ${slug} has ${what}. ${whoCan(connector)} store one: platform connectors set-credential ${slug}.`;
};

/** The stored value or client of a connector. */
const openStored = Effect.fnUntraced(function* (holder: CredentialHolder, connector: Connector) {
  const { slug, auth } = connector;
  const origin = boundTo(connector);
  const sealedCredential = yield* (yield* Connectors).credential(holder);
  if (sealedCredential === null || sealedCredential.kind !== credentialKind(auth))
    return { value: null, missing: noCredential(connector) };
  if (sealedCredential.origin !== origin)
    return {
      value: null,
      missing: `The connector ${slug} moved to ${origin}, and its credential is for ${sealedCredential.origin}. ${whoCan(connector)} store one for the new place.`,
    };
  const value = unsealSecret(
    (yield* Keyring).secrets,
    credentialPlace(sealedCredential),
    sealedCredential.envelope,
  );
  if (Result.isSuccess(value)) return { value: value.success, missing: null };
  return {
    value: null,
    missing: `The credential of the connector ${slug} ${UNOPENED}. ${whoCan(connector)} store it again.`,
  };
});

/** Whether the manifest says that the server does not undo the encoding of Basic authentication. */
export const isPlain = (auth: Connector["auth"]): boolean =>
  "clientAuth" in auth && auth.clientAuth === "basic_plain";

/** V3. The client that an owner stored for a connector, or that the manifest names. */
export const storedClient = Effect.fnUntraced(function* (projectId: string, connector: Connector) {
  const { auth } = connector;
  const { value } = yield* openStored({ projectId, slug: connector.slug, personId: null }, connector);
  const client = value === null ? null : readClient(value);
  const clientId = "clientId" in auth ? auth.clientId : null;
  // A secret is of no use to another client.
  if (client !== null && (clientId === null || clientId === client.id))
    return isPlain(auth) ? { ...client, isPlain: true as const } : client;
  return auth.kind === "oauth" && auth.clientId !== null
    ? ({ id: auth.clientId, secret: null } satisfies OAuthClient)
    : null;
});

/** Opens the tokens of a row. */
export const openGrant = Effect.fnUntraced(function* (storedGrant: StoredGrant) {
  const { envelope } = storedGrant;
  if (envelope === null) return { stored: storedGrant, grant: null } satisfies HeldGrant;
  const text = unsealSecret((yield* Keyring).secrets, grantPlace(storedGrant), envelope);
  return {
    stored: storedGrant,
    grant: Result.isSuccess(text) ? readGrant(text.success) : null,
  } satisfies HeldGrant;
});

/** The sentence that says how a person can repair it. */
export const grantRemedy = (connector: Pick<Connector, "slug" | "credential">, kind: GrantKind): string => {
  const { slug } = connector;
  return kind === "oauth"
    ? `${whoCan(connector)} sign in again: platform connectors authorize ${slug}.`
    : `A person can store the client's secret again: platform connectors set-credential ${slug}.`;
};

/** Why a grant is of no use, as a sentence with what to do. Null if it is of use. */
export const grantLack = (
  connector: Pick<Connector, "slug" | "url" | "auth" | "credential">,
  kind: GrantKind,
  storedGrant: StoredGrant | null | undefined,
): string | null => {
  const { slug, credential } = connector;
  const origin = boundTo(connector);
  const isOAuth = kind === "oauth";
  if (
    storedGrant === null ||
    storedGrant === undefined ||
    storedGrant.status === "removed" ||
    storedGrant.kind !== kind
  )
    return isOAuth
      ? `${credential === "user" ? "This" : "No"} person has ${credential === "user" ? "not " : ""}signed in to the connector ${slug}. ${whoCan(connector)} sign in: platform connectors authorize ${slug}.`
      : noCredential(connector);
  if (storedGrant.origin !== origin)
    return `The connector ${slug} moved to ${origin}, and its sign-in is for ${storedGrant.origin}. ${grantRemedy(connector, kind)}`;
  return storedGrant.status === "refused"
    ? `The sign-in of the connector ${slug} has ended: ${storedGrant.failure ?? "refused"}. ${grantRemedy(connector, kind)}`
    : null;
};

const openHeld = Effect.fnUntraced(function* (
  holder: CredentialHolder,
  connector: Connector,
  kind: GrantKind,
) {
  const { slug } = connector;
  const storedGrant = yield* (yield* ConnectorGrants).get(holder);
  const lack = grantLack(connector, kind, storedGrant);
  if (storedGrant === null || lack !== null) return missing(lack ?? UNOPENED);
  const heldGrant = yield* openGrant(storedGrant);
  return heldGrant.grant === null && storedGrant.envelope !== null
    ? missing(`The tokens of the connector ${slug} cannot be opened. ${grantRemedy(connector, kind)}`)
    : openedCredential({ kind: "grant", held: heldGrant });
});

/** V2. */
const mayUse = Effect.fnUntraced(function* ({ projectId, personId }: CredentialHolder) {
  if (personId === null) return true;
  const members = yield* (yield* People).members(projectId);
  return members.some(({ person, role }) => person.id === personId && role !== "viewer");
});

/**
 * Opens the credential that a connector needs. It asks no server.
 *
 * @param userId the session's person. Null if no person did.
 */
export const openCredential = Effect.fnUntraced(function* (
  projectId: string,
  connector: Connector,
  userId: string | null,
) {
  const kind = credentialKind(connector.auth);
  if (connector.auth.kind === "none") return openedCredential({ kind: "none" });
  const holder = credentialHolder(connector, projectId, userId);
  if (holder === null)
    return missing(
      `The connector ${connector.slug} needs a person's own credential, and this is for no person.`,
    );
  if (!(yield* mayUse(holder)))
    return missing(
      `The person whose credential the connector ${connector.slug} needs does not work in this project any more.`,
    );
  if (kind !== "value") return yield* openHeld(holder, connector, kind);
  const { value, missing: why } = yield* openStored(holder, connector);
  return value === null ? missing(why) : openedCredential({ kind: "value", value });
});
