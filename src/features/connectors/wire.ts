/** A connector in answers of the API, and the connector that a request names. */
import * as Effect from "effect/Effect";
import { catalogueChanges, leftOutTotal, type Catalogue } from "../../domain/connector/catalogue.ts";
import { isConnectorSlug, type Connector } from "../../domain/connector/connector.ts";
import { credentialKind, boundTo } from "../../domain/connector/connector-credential.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { credentialHolder, grantLack } from "../../services/connectors/credentials.ts";
import { catalogueFor, acceptedTools } from "../../services/connectors/connectors.ts";
import { ConnectorGrants, type StoredGrant } from "../../store/ports/connectors/connector-grants.ts";
import {
  Connectors,
  type StoredCatalogue,
  type StoredCredential,
} from "../../store/ports/connectors/connectors.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, notFound } from "../../http/api/errors.ts";
import { projectFor } from "../../http/steps/answers.ts";
import { instant, instantOrNull } from "../../http/steps/wire.ts";

/** @param catalogue absent: the tools were never fetched */
export const leftOutWire = (catalogue: Catalogue | undefined) => ({
  left_out: catalogue?.leftOut ?? [],
  left_out_total: catalogue === undefined ? 0 : leftOutTotal(catalogue),
});

export interface Place {
  readonly pid: string;
  readonly slug: string;
}

/** The stored records of a connector. */
interface About {
  readonly credential: StoredCredential | null | undefined;
  readonly grant: StoredGrant | null | undefined;
  readonly seen: StoredCatalogue | null | undefined;
}

/** A credential for another place or kind is none. */
const credentialFor = (connector: Connector, credential: About["credential"]) => {
  const { auth } = connector;
  return auth.kind !== "none" &&
    credential?.origin === boundTo(connector) &&
    credential.kind === credentialKind(auth)
    ? credential
    : null;
};

/** A grant for another place or kind is none. */
const grantFor = (connector: Connector, grant: About["grant"]) =>
  grant?.kind === connector.auth.kind && grant.origin === boundTo(connector) && grant.status !== "removed"
    ? grant
    : null;

/** Whether a person must store a credential or sign in. */
const isMissing = (connector: Connector, { credential, grant }: About): boolean => {
  const kind = credentialKind(connector.auth);
  if (kind !== "value") return grantLack(connector, kind, grant) !== null;
  return connector.auth.kind !== "none" && credentialFor(connector, credential) === null;
};

const connectorState = (connector: Connector, about: About) => {
  const catalogue = catalogueFor(connector, about.seen);
  if (isMissing(connector, about)) return "needs_credential";
  if (catalogue === null) return "needs_refresh";
  if (catalogue.failure !== null) return "failed";
  return toAccept(catalogue) > 0 || catalogue.accepted === null ? "needs_acceptance" : "ready";
};

const toAccept = ({ accepted, latest }: StoredCatalogue): number => {
  const { added, changed } = catalogueChanges(accepted?.catalogue ?? null, latest?.catalogue ?? null);
  return added.length + changed.length;
};

const signInWire = (grant: StoredGrant) => ({
  status: grant.status === "refused" ? ("ended" as const) : ("signed_in" as const),
  issuer: grant.issuer,
  at: instant(grant.grantedAt),
  by: grant.grantedBy,
  renewed_at: instantOrNull(grant.renewedAt),
  expires_at: instantOrNull(grant.expiresAt),
  failure: grant.failure,
});

/** Why a sign-in has ended, for the person who reads it: her own, or the project's. */
const grantEnd = (connector: Connector, grant: StoredGrant): string | null =>
  connector.credential === "user"
    ? `Your sign-in has ended: ${grant.failure ?? "refused"}. Sign in again.`
    : grantLack(connector, grant.kind, grant);

export const connectorWire = (connector: Connector, about: About) => {
  const { slug, kind, url, auth, sessions, direct } = connector;
  const credential = credentialFor(connector, about.credential);
  const grant = grantFor(connector, about.grant);
  const catalogue = catalogueFor(connector, about.seen);
  const endedGrant = grant?.status === "refused" && auth.kind !== "none" ? grant : null;
  return {
    slug,
    kind,
    url,
    auth: auth.kind,
    auth_name: "name" in auth ? auth.name : null,
    credential_of: connector.credential,
    sessions,
    direct,
    state: connectorState(connector, about),
    credential:
      credential === null
        ? null
        : {
            origin: credential.origin,
            updated_at: instant(credential.updatedAt),
            updated_by: credential.updatedBy,
          },
    sign_in: grant === null ? null : signInWire(grant),
    usable: acceptedTools(catalogue).length,
    to_accept: catalogue === null ? 0 : toAccept(catalogue),
    ...leftOutWire(catalogue?.latest?.catalogue),
    failure: endedGrant === null ? (catalogue?.failure ?? null) : grantEnd(connector, endedGrant),
    refreshed_at: instantOrNull(catalogue?.latest?.at ?? null),
  } as const;
};

/** The connector of the path in the manifest that is in force. */
export const connectorFor = Effect.fnUntraced(function* ({ pid, slug }: Place) {
  const project = yield* projectFor(yield* Caller, pid);
  if (!isConnectorSlug(slug))
    return yield* badRequest("slug", "must have 1 to 20 characters of a-z, 0-9 and -");
  const { executor } = yield* (yield* Manifests).current(project);
  const connector = executor.connectors.find((one) => one.slug === slug);
  if (connector === undefined) return yield* notFound("connector");
  return { connector, executor };
});

/** A trigger's session acts for no person, so it sees no person's own credentials. */
const NO_PERSON = "00000000-0000-0000-0000-000000000000";

/** The stored records of connectors for the caller: the project's and her own. No person sees another's. */
export const makeAbout = Effect.fnUntraced(function* (pid: string) {
  const { origin, user } = yield* Caller;
  const me = origin === "trigger" ? NO_PERSON : user.id;
  const store = yield* Connectors;
  const credentials = yield* store.credentials(pid, me);
  const grants = yield* (yield* ConnectorGrants).list(pid, me);
  const catalogues = yield* store.catalogues(pid);
  return (connector: Connector): About => {
    const { slug } = connector;
    const personId = credentialHolder(connector, pid, me)?.personId ?? null;
    return {
      credential: credentials.find((row) => row.slug === slug && row.personId === personId),
      grant: grants.find((row) => row.slug === slug && row.personId === personId),
      seen: catalogues.find((row) => row.slug === slug),
    };
  };
});

/** The connector as it is stored now. */
export const currentWire = Effect.fnUntraced(function* (pid: string, connector: Connector) {
  const readAbout = yield* makeAbout(pid);
  return connectorWire(connector, readAbout(connector));
});
