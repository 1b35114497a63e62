/** The handlers that store and remove credentials of connectors, and begin sign-ins. No answer, log or error contains a credential. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { isConnectorSlug, type Connector } from "../../domain/connector/connector.ts";
import {
  checkConnectorCredential,
  credentialKind,
  credentialPlace,
  boundTo,
  type CredentialHolder,
} from "../../domain/connector/connector-credential.ts";
import { checkClient } from "../../domain/connector/connector-grant.ts";
import { NONCE_BYTES, sealSecret } from "../../domain/secret/secret.ts";
import type { SignInFault } from "../../connectors/sign-in/port.ts";
import { withAudit } from "../../services/audit.ts";
import { beginSignIn, expectToken } from "./sign-in.ts";
import { endSignIn } from "../../services/connectors/left-credentials.ts";
import { refreshAfter } from "../../services/connectors/catalogues.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { lackAt } from "../../http/callers/access.ts";
import { forbidden } from "../../http/callers/authorize.ts";
import { Caller, type RequestCaller } from "../../http/api/access.ts";
import { BadGateway, badRequest, Conflict, notFound } from "../../http/api/errors.ts";
import { Addresses } from "../../http/limits.ts";
import { connectorRedirectUri, connectorSignInAddress } from "./sign-in-page.ts";
import { projectFor } from "../../http/steps/answers.ts";
import { connectorFor, currentWire, type Place } from "./wire.ts";
import { instant } from "../../http/steps/wire.ts";

interface Wish {
  readonly value: string;
  readonly client_id?: string;
}

/** The text that is sealed: a value, or a client with its secret. */
const sealable = Effect.fnUntraced(function* ({ slug, auth }: Connector, { value, client_id: given }: Wish) {
  if (auth.kind === "none")
    return yield* new Conflict({
      error: `The connector ${slug} takes no credential: its auth is "none". Change it in platform.toml first.`,
      code: "no_credential_needed",
    });
  if (auth.kind === "oauth" || auth.kind === "client_credentials") {
    const client = { id: auth.clientId ?? given ?? null, secret: value };
    const wrong = checkClient(client);
    if (wrong !== null) return yield* badRequest(...wrong);
    return JSON.stringify(client satisfies { id: string | null; secret: string });
  }
  if (given !== undefined)
    return yield* badRequest("client_id", `is only for auth "oauth" and "client_credentials"`);
  const wrong = checkConnectorCredential(auth, value);
  return wrong === null ? value : yield* badRequest("value", wrong);
});

const atOnce = () =>
  Effect.fail(
    new Conflict({
      error: "Another request changed this credential at the same time. Try again.",
      code: "conflict",
    }),
  );

/** Whether the caller governs the project. */
const isOwner = ({ reached }: RequestCaller): boolean =>
  reached !== undefined && lackAt("govern_project", reached) === null;

/** A credential of the project is its owners'. */
const requireOwner = Effect.fnUntraced(function* (caller: RequestCaller) {
  const lack = caller.reached === undefined ? null : lackAt("govern_project", caller.reached);
  if (lack !== null) return yield* forbidden(caller, lack);
});

/**
 * Stores a credential: the project's, or the caller's own. A client of an OAuth server is the project's, even where each person
 * signs in with it.
 */
export const putCredential = Effect.fnUntraced(function* ({ pid, slug }: Place, wish: Wish) {
  const { connector } = yield* connectorFor({ pid, slug });
  const caller = yield* Caller;
  const isOwn = connector.credential === "user" && credentialKind(connector.auth) === "value";
  if (!isOwn) yield* requireOwner(caller);
  const holder = { projectId: pid, slug, personId: isOwn ? caller.user.id : null };
  const value = yield* sealable(connector, wish);
  const store = yield* Connectors;
  const version = yield* store.nextVersion(holder);
  const kind = credentialKind(connector.auth);
  const place = { ...holder, origin: boundTo(connector), kind, version };
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const envelope = sealSecret((yield* Keyring).secrets, credentialPlace(place), { value, nonce });
  const { user } = caller;
  const by = { userId: user.id, now: yield* Clock.currentTimeMillis };
  const row = {
    action: "connector.credential_set",
    target: slug,
    changes: { origin: place.origin, credential: isOwn ? "user" : "project" },
  } as const;
  yield* store.putCredential({ ...place, envelope }, by).pipe(
    withAudit(() => row),
    Effect.catchTag("Fenced", atOnce),
  );
  // The grant of another client is of no use to this one. People's own grants have their client with them.
  yield* endSignIn(holder);
  if (kind === "client_credentials")
    yield* Effect.catchTag(expectToken(pid, connector, user.id), "Fenced", atOnce);
  if (kind !== "oauth") yield* refreshAfter(pid, connector, { userId: user.id, isOwner: isOwner(caller) });
  return yield* currentWire(pid, connector);
});

/** Removes a stored credential and a sign-in. @returns whether there was any. */
const removeCredential = Effect.fnUntraced(function* (holder: CredentialHolder) {
  const now = yield* Clock.currentTimeMillis;
  const row = {
    action: "connector.credential_removed",
    target: holder.slug,
    changes: { credential: holder.personId === null ? "project" : "user" },
  } as const;
  const removal = (yield* Connectors).removeCredential(holder, now);
  const wasStored = yield* removal.pipe(withAudit((isRemoved) => (isRemoved ? row : null)));
  const wasSignedIn = yield* endSignIn(holder);
  return wasStored || wasSignedIn;
});

/**
 * Removes the caller's own credential, and the project's if the connector does not want people's own. A credential of a connector
 * that the manifest does not have any more can be removed too.
 */
export const deleteCredential = Effect.fnUntraced(function* ({ pid, slug }: Place) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, pid);
  if (!isConnectorSlug(slug))
    return yield* badRequest("slug", "must have 1 to 20 characters of a-z, 0-9 and -");
  const { executor } = yield* (yield* Manifests).current(project);
  const connector = executor.connectors.find((one) => one.slug === slug);
  const place = { projectId: pid, slug };
  const hadOwn = yield* removeCredential({ ...place, personId: caller.user.id });
  if (connector?.credential === "user") return hadOwn ? undefined : yield* notFound("credential");
  if (hadOwn && !isOwner(caller)) return;
  yield* requireOwner(caller);
  const had = yield* removeCredential({ ...place, personId: null });
  if (!had && !hadOwn) return yield* notFound("credential");
});

const signInRefusal = (slug: string, { kind, why }: SignInFault) =>
  kind === "needs_client"
    ? new Conflict({
        error: `${why}: platform connectors set-credential ${slug} --client-id ID.`,
        code: "needs_client",
      })
    : new BadGateway({ error: `The sign-in cannot begin. ${why}.`, code: "sign_in_unavailable" });

/** Begins a sign-in, and says which address its person opens. */
export const authorize = Effect.fnUntraced(function* (place: Place) {
  const { connector } = yield* connectorFor(place);
  const { slug, auth } = connector;
  if (auth.kind !== "oauth")
    return yield* new Conflict({
      error: `The connector ${slug} needs no sign-in: its auth is "${auth.kind}".`,
      code: "no_sign_in_needed",
    });
  const caller = yield* Caller;
  if (connector.credential === "project") yield* requireOwner(caller);
  const { publicUrl } = yield* Addresses;
  const redirectUri = connectorRedirectUri(publicUrl);
  const by = { projectId: place.pid, userId: caller.user.id, redirectUri };
  const beginning = yield* Effect.catchTag(beginSignIn(connector, by), "SignInFault", (fault) =>
    Effect.fail(signInRefusal(slug, fault)),
  );
  return {
    url: connectorSignInAddress(publicUrl, beginning.ticket),
    expires_at: instant(beginning.expiresAt),
  };
});
