/**
 * New tokens for a connector, once for all that need them.
 *
 *  J1 One holder of the row's lease asks the server, on any number of nodes. All others wait for what it writes. A holder that
 *     died is replaced when its lease ends.
 *  J2 A new token is stored before it is used. No interruption comes between the server's answer and the write: a
 *     refresh token that rotates would be lost.
 *  J3 A server that refuses ends the grant, with the reason. A server that does not answer ends nothing. Those who waited
 *     fail with the one who asked, so that a dead server is not asked by each of them.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import type { Connector } from "../../domain/connector/connector.ts";
import { credentialMask } from "../../domain/connector/connector-credential.ts";
import { grantPlace, grantSecrets, type Grant } from "../../domain/connector/connector-grant.ts";
import { NONCE_BYTES, sealSecret } from "../../domain/secret/secret.ts";
import { ConnectorSignIns, type SignInFault } from "../../connectors/sign-in/port.ts";
import {
  ConnectorGrants,
  type NewGrant,
  type StoredGrant,
} from "../../store/ports/connectors/connector-grants.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { grantLack, openGrant, grantRemedy, storedClient, type HeldGrant } from "./credentials.ts";
import { Entropy, newUuid } from "../entropy.ts";
import { Keyring } from "../keyring.ts";
import { toldBy } from "../told.ts";

/** A renewal asks at most four times, each within 10 s (asking.ts). After this time its holder has died. */
const LEASE_MS = 60_000;
/** How long a call waits for the holder. With the call itself it stays below the time after which a call counts as lost. */
const WAIT_MS = 15_000;
/** A server that did not answer is not asked again for so long. */
const PAUSE_MS = 2000;
const LOOK_AGAIN = "100 millis";

/** Why a call was not sent, or not again. */
export interface CredentialFault {
  readonly _tag: "CredentialFault";
  /** A whole sentence. */
  readonly message: string;
  /** Whether the grant has ended. */
  readonly isFinal: boolean;
}

const fault = (message: string, isFinal = false): CredentialFault => ({
  _tag: "CredentialFault",
  message,
  isFinal,
});

interface Renewed {
  readonly stored: StoredGrant;
  readonly grant: Grant;
}

/** Seals a grant for its row. */
export const sealGrant = Effect.fnUntraced(function* (
  place: Pick<NewGrant, "projectId" | "slug" | "personId" | "version" | "origin">,
  grant: Grant,
) {
  const { kind, server, expiresAt } = grant;
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const kindPlace = { ...place, kind };
  const value = JSON.stringify(grant satisfies Grant);
  return {
    ...kindPlace,
    envelope: sealSecret((yield* Keyring).secrets, grantPlace(kindPlace), { value, nonce }),
    issuer: server.issuer,
    expiresAt,
  } satisfies NewGrant;
});

/** The reason of a fault for people and for the database, without the secrets that a server may have quoted. */
const faultWords = ({ why }: SignInFault, secrets: readonly string[]): string =>
  toldBy(credentialMask(secrets), why);

/** The present grant, if it is newer than the held one. Null if the held one is present. */
const replacedGrant = Effect.fnUntraced(function* (
  connector: Connector,
  { stored }: HeldGrant,
  now: StoredGrant | null,
) {
  if (now?.version === stored.version) return null;
  const lack = grantLack(connector, stored.kind, now);
  if (now === null || lack !== null) return yield* Effect.fail(fault(lack ?? "", true));
  const { grant } = yield* openGrant(now);
  if (grant === null) return yield* Effect.fail(fault(`The tokens of ${connector.slug} cannot be opened.`));
  return { stored: now, grant } satisfies Renewed;
});

/** The next tokens from the server: the first ones if only a client is stored. */
const ask = Effect.fnUntraced(function* (connector: Connector, { stored, grant }: HeldGrant) {
  const signIns = yield* ConnectorSignIns;
  if (grant !== null) return yield* signIns.renew(grant);
  const { auth, url } = connector;
  const client = yield* storedClient(stored.projectId, connector);
  const { scope = null, issuer = null } = auth.kind === "client_credentials" ? auth : {};
  if (client === null)
    return yield* Effect.fail<SignInFault>({
      _tag: "SignInFault",
      kind: "refused",
      why: "No client is stored",
    });
  return yield* signIns.fetchToken({ url, kind: connector.kind, issuer, scope, client });
});

/** Tokens that were not stored are of no use to anyone. */
const discard = (grant: Grant) =>
  Effect.flatMap(ConnectorSignIns, (signIns) => Effect.ignore(signIns.revoke(grant)));

const lostFault = (slug: string) =>
  fault(`The sign-in of the connector ${slug} was replaced while it was renewed. Try again.`);

/** Asks the server and writes its answer, as the holder of the lease (J2). */
const renew = Effect.fnUntraced(function* (connector: Connector, heldGrant: HeldGrant, holder: string) {
  const { stored } = heldGrant;
  const { slug } = connector;
  const grants = yield* ConnectorGrants;
  const answer = yield* Effect.result(ask(connector, heldGrant));
  const now = yield* Clock.currentTimeMillis;
  if (Result.isFailure(answer)) {
    const { failure: why } = answer;
    if (why._tag !== "SignInFault") return yield* Effect.fail(why);
    const isRefused = why.kind !== "unreachable";
    const failure = faultWords(why, heldGrant.grant === null ? [] : grantSecrets(heldGrant.grant));
    yield* Effect.retry(grants.fail(stored, { holder, now, failure, isRefused }), WRITE);
    yield* Effect.logInfo("a connector's tokens were not renewed", { slug, kind: why.kind, failure });
    return yield* Effect.fail(noteFailure(connector, { failure, isRefused, kind: stored.kind }));
  }
  const next = { ...stored, version: stored.version + 1 };
  const sealedGrant = yield* sealGrant(next, answer.success);
  if (!(yield* Effect.retry(grants.renew(sealedGrant, { holder, now }), WRITE))) {
    yield* discard(answer.success);
    return yield* Effect.fail(lostFault(slug));
  }
  return { stored: { ...next, ...sealedGrant, status: "held" }, grant: answer.success } satisfies Renewed;
});

/** An outage of the database is waited out for 6 s, because a token that rotated is lost otherwise. */
const WRITE = { times: 30, schedule: Schedule.spaced("200 millis") };

const noteFailure = (
  connector: Connector,
  about: {
    readonly failure: string;
    readonly isRefused: boolean;
    readonly kind: StoredGrant["kind"];
  },
): CredentialFault => {
  const { slug } = connector;
  const { failure, isRefused, kind } = about;
  return isRefused
    ? fault(
        `The sign-in of the connector ${slug} has ended: ${failure}. ${grantRemedy(connector, kind)}`,
        true,
      )
    : fault(`The tokens of the connector ${slug} could not be renewed: ${failure}. Try again later.`);
};

/** Why the last attempt did not succeed, if it was made while this call waited, or just before it (J3). */
const failedJustNow = Effect.fnUntraced(function* (
  connector: Connector,
  heldGrant: HeldGrant,
  now: StoredGrant | null,
) {
  const { version, kind } = heldGrant.stored;
  if (now?.version !== version || now.failure === null || now.failedAt === null) return null;
  const isOld = (yield* Clock.currentTimeMillis) - now.failedAt >= PAUSE_MS;
  return isOld && now.failedAt === heldGrant.stored.failedAt
    ? null
    : noteFailure(connector, { failure: now.failure, isRefused: false, kind });
});

/** Waits for the lease, or for what its holder writes (J1). */
const attempt = Effect.fnUntraced(function* (connector: Connector, heldGrant: HeldGrant) {
  const grants = yield* ConnectorGrants;
  const holder = yield* newUuid;
  const begunAt = yield* Clock.currentTimeMillis;
  for (;;) {
    const present = yield* grants.get(heldGrant.stored);
    const next = yield* replacedGrant(connector, heldGrant, present);
    if (next !== null) return next;
    const recentFailure = yield* failedJustNow(connector, heldGrant, present);
    if (recentFailure !== null) return yield* Effect.fail(recentFailure);
    const now = yield* Clock.currentTimeMillis;
    if (now - begunAt > WAIT_MS)
      return yield* Effect.fail(
        fault(`The tokens of the connector ${connector.slug} are still being renewed. Try again.`),
      );
    const renewing = Effect.gen(function* () {
      // A holder that failed since then has given its answer to all that wait (J3).
      const failedAt = present?.failedAt ?? null;
      const lease = yield* grants.lease(heldGrant.stored, { holder, now, until: now + LEASE_MS, failedAt });
      return lease === "leased" ? yield* renew(connector, heldGrant, holder) : null;
    });
    const renewal = yield* Effect.uninterruptible(renewing);
    if (renewal !== null) return renewal;
    yield* Effect.sleep(LOOK_AGAIN);
  }
});

const UNSTORED = fault("The database cannot be reached. Try again in a moment.");

/**
 * Tokens that are newer than those that are held.
 *
 * @returns those of another caller, if it has renewed them meanwhile.
 */
export const renewGrant = (connector: Connector, heldGrant: HeldGrant) =>
  Effect.mapError(attempt(connector, heldGrant), (error: CredentialFault | StoreError): CredentialFault =>
    error._tag === "CredentialFault" ? error : UNSTORED,
  );
