/**
 * Signing in to a connector, from the person's wish to the stored tokens, and its end.
 *
 *  W1 A sign-in belongs to the person who began it: only she opens its address, and only the browser in which she opened it
 *     ends it, once, within ten minutes (connector-grants.ts N3).
 *  W2 The tokens are stored for the origin and kind for which she began, if the connector still has them, and if she
 *     still is an owner of the project. Where each person has tokens of her own, a member is enough.
 *  W3 Tokens become hers or the project's as she was told when she began. If the manifest says the other since, they are
 *     not stored.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { Connector } from "../../domain/connector/connector.ts";
import { boundTo, credentialMask } from "../../domain/connector/connector-credential.ts";
import { flowPlace, readPending, type PendingSignIn } from "../../domain/connector/connector-grant.ts";
import { tokenHash } from "../../domain/ids.ts";
import { includesRole } from "../../domain/person/role.ts";
import { NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { ConnectorSignIns, type SignInFault } from "../../connectors/sign-in/port.ts";
import { ConnectorGrants, type Flow } from "../../store/ports/connectors/connector-grants.ts";
import { People } from "../../store/ports/people/people.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { withAudit, type AuditEntry } from "../../services/audit.ts";
import { storedClient, isPlain } from "../../services/connectors/credentials.ts";
import { sealGrant } from "../../services/connectors/renewal.ts";
import { refreshAfter } from "../../services/connectors/catalogues.ts";
import { projectExecutor } from "../../services/connectors/connectors.ts";
import { Entropy, newPassword } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { toldBy } from "../../services/told.ts";

export const FLOW_LIFE_MS = 10 * 60 * 1000;

export interface SignInTicket {
  /** A secret of the address that the person opens. */
  readonly ticket: string;
  readonly expiresAt: number;
}

const OWN_SECRET = /[\w.~-]{16,}/;

/** A fault for people, without anything that a sign-in could have sent. */
const toldFor = (fault: SignInFault, secrets: readonly (string | null)[]): SignInFault => ({
  ...fault,
  why: toldBy(
    credentialMask(secrets.filter((secret) => secret !== null && OWN_SECRET.test(secret)).map(String)),
    fault.why,
  ),
});

/** Begins a sign-in of this person (W1). The connector's auth is `oauth`. */
export const beginSignIn = Effect.fnUntraced(function* (
  connector: Connector,
  by: { readonly projectId: string; readonly userId: string; readonly redirectUri: string },
) {
  const { slug, url, auth } = connector;
  const { projectId, userId, redirectUri } = by;
  const client = yield* storedClient(projectId, connector);
  const [state, verifier, ticket] = [yield* newPassword, yield* newPassword, yield* newPassword];
  const { scope = null, issuer = null } = auth.kind === "oauth" ? auth : {};
  const pending = yield* Effect.mapError(
    (yield* ConnectorSignIns).begin({
      url,
      kind: connector.kind,
      issuer,
      scope,
      client,
      isPlain: isPlain(auth),
      redirectUri,
      state,
      verifier,
    }),
    (fault) => toldFor(fault, [client?.secret ?? null]),
  );
  const now = yield* Clock.currentTimeMillis;
  const isOwn = connector.credential === "user";
  const place = { projectId, slug, origin: boundTo(connector), stateHash: tokenHash(state) };
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const value = JSON.stringify(pending satisfies PendingSignIn);
  const envelope = sealSecret((yield* Keyring).secrets, flowPlace(place), { value, nonce });
  const expiresAt = now + FLOW_LIFE_MS;
  const flowRow = { ...place, userId, isOwn, envelope, ticketHash: tokenHash(ticket), expiresAt, now };
  yield* (yield* ConnectorGrants).begin(flowRow);
  return { ticket, expiresAt } satisfies SignInTicket;
});

const openPending = Effect.fnUntraced(function* (flow: Flow) {
  const opened = unsealSecret((yield* Keyring).secrets, flowPlace(flow), flow.envelope);
  return Result.isSuccess(opened) ? readPending(opened.success) : null;
});

/** Opens the address of a sign-in in a browser. @returns where the browser goes, or null if the sign-in is not this person's or is over. */
export const openSignIn = Effect.fnUntraced(function* (by: {
  readonly ticket: string;
  readonly userId: string;
  /** The session of the page in this browser. */
  readonly browserId: string;
  readonly browser: string;
}) {
  const now = yield* Clock.currentTimeMillis;
  const flow = yield* (yield* ConnectorGrants).open({
    ticketHash: tokenHash(by.ticket),
    userId: by.userId,
    browserId: by.browserId,
    browserHash: tokenHash(by.browser),
    now,
  });
  return flow === null ? null : ((yield* openPending(flow))?.address ?? null);
});

export type Finished =
  | { readonly kind: "signed_in"; readonly projectId: string; readonly slug: string }
  /** The browser has no such sign-in. */
  | { readonly kind: "unknown" }
  /** The connector has changed, or she is no longer an owner. */
  | { readonly kind: "changed" }
  | { readonly kind: "fault"; readonly fault: SignInFault };

/** The connector for which a sign-in was begun, if it is still the same (W2). */
const findConnector = Effect.fnUntraced(function* ({ projectId, slug, origin, userId, isOwn }: Flow) {
  const connector = (yield* projectExecutor(projectId))?.connectors.find((one) => one.slug === slug);
  if (connector?.auth.kind !== "oauth" || boundTo(connector) !== origin) return null;
  if ((connector.credential === "user") !== isOwn) return null;
  const members = yield* (yield* People).members(projectId);
  const member = members.find(({ person }) => person.id === userId);
  const project = yield* (yield* Projects).get(projectId);
  if (member === undefined || project === null || !includesRole(member.role, isOwn ? "member" : "owner"))
    return null;
  return { connector, person: member.person, isOwner: member.role === "owner", project };
});

type Found = NonNullable<Effect.Success<ReturnType<typeof findConnector>>>;

/** A sign-in on the audit record. The callback has no cookie of the page, so the row has no token. */
const signedIn = ({ projectId, slug, origin, isOwn }: Flow, { person, project }: Found) =>
  ({
    action: "connector.signed_in",
    target: slug,
    actor: { kind: "person", id: person.id, name: person.name, tokenId: null },
    accountId: project.accountId,
    projectId,
    changes: { origin, credential: isOwn ? "user" : "project" },
  }) satisfies AuditEntry;

/** Ends a sign-in with what its browser brought, stores the tokens, and fetches the server's tools. */
export const finishSignIn = Effect.fnUntraced(function* (by: {
  readonly browser: string;
  readonly callback: URL;
}) {
  const grants = yield* ConnectorGrants;
  const state = by.callback.searchParams.get("state") ?? "";
  const now = yield* Clock.currentTimeMillis;
  const hashes = { stateHash: tokenHash(state), browserHash: tokenHash(by.browser) };
  const flow = yield* grants.take({ ...hashes, now });
  const pending = flow === null ? null : yield* openPending(flow);
  if (flow === null || pending === null) return { kind: "unknown" } satisfies Finished;
  const target = yield* findConnector(flow);
  if (target === null) return { kind: "changed" } satisfies Finished;
  const { projectId, slug, origin, userId } = flow;
  const holder = { projectId, slug, personId: flow.isOwn ? userId : null };
  // A code is of use once: the tokens for it are stored, whatever happens to the browser meanwhile.
  const storing = Effect.gen(function* () {
    const grant = yield* (yield* ConnectorSignIns).finish(pending, by.callback);
    const version = ((yield* grants.get(holder))?.version ?? 0) + 1;
    const sealed = yield* sealGrant({ ...holder, origin, version }, grant);
    const grantor = { userId, now: yield* Clock.currentTimeMillis };
    yield* grants.put(sealed, grantor).pipe(withAudit(() => signedIn(flow, target)));
  });
  const storage = yield* Effect.result(Effect.uninterruptible(storing));
  if (Result.isFailure(storage)) {
    const { failure } = storage;
    // Another owner signed in at the same moment. Her tokens are as good.
    if (failure._tag === "Fenced") return { kind: "signed_in", projectId, slug } satisfies Finished;
    if (failure._tag !== "SignInFault") return yield* Effect.fail(failure);
    const secrets = [pending.client.secret, pending.verifier, by.callback.searchParams.get("code")];
    return { kind: "fault", fault: toldFor(failure, secrets) } satisfies Finished;
  }
  yield* refreshAfter(projectId, target.connector, { userId, isOwner: target.isOwner });
  return { kind: "signed_in", projectId, slug } satisfies Finished;
});

/** Keeps that the service signs in as itself with a client that was just stored. The first use fetches a token. */
export const expectToken = Effect.fnUntraced(function* (
  projectId: string,
  connector: Pick<Connector, "slug" | "url" | "auth">,
  userId: string,
) {
  const grants = yield* ConnectorGrants;
  // The service signs in as itself, so the grant is the project's.
  const holder = { projectId, slug: connector.slug, personId: null };
  const version = ((yield* grants.get(holder))?.version ?? 0) + 1;
  const grantPlace = { ...holder, version, origin: boundTo(connector), kind: "client_credentials" as const };
  const now = yield* Clock.currentTimeMillis;
  yield* grants.put({ ...grantPlace, envelope: null, issuer: null, expiresAt: null }, { userId, now });
});
