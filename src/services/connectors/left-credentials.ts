/**
 * Forgets the tokens of a sign-in, and the own credentials of people who are deactivated. These are of no use from that moment on (credentials.ts V2).
 * The request that deactivates a person does it at once; the duty `people` finds what a crash left.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { CredentialHolder } from "../../domain/connector/connector-credential.ts";
import { Connectors } from "../../store/ports/connectors/connectors.ts";
import { ConnectorGrants } from "../../store/ports/connectors/connector-grants.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { Acting, withAudit } from "../audit.ts";
import { ConnectorSignIns } from "../../connectors/sign-in/port.ts";
import { openGrant } from "./credentials.ts";

/** How long a server may take to revoke. */
const REVOKE = "10 seconds";

/** Forgets a connector's tokens, and asks the server to revoke them. @returns whether there were any. */
export const endSignIn = Effect.fnUntraced(function* (holder: CredentialHolder) {
  const { projectId, slug, personId } = holder;
  const now = yield* Clock.currentTimeMillis;
  const changes = { credential: personId === null ? "project" : "user" };
  const row = { action: "connector.signed_out", target: slug, projectId, changes } as const;
  const removal = (yield* ConnectorGrants).remove(holder, now);
  const lastGrant = yield* removal.pipe(withAudit((formerGrant) => (formerGrant === null ? null : row)));
  if (lastGrant === null) return false;
  const { grant } = yield* openGrant(lastGrant);
  if (grant !== null) {
    const revoking = (yield* ConnectorSignIns).revoke(grant);
    yield* Effect.ignore(Effect.timeout(revoking, REVOKE));
  }
  return true;
});

/** A duty acts for no account. The rows belong to that of the project. */
const inProjectAccount = Effect.fnUntraced(function* <A, E, R>(
  { projectId }: CredentialHolder,
  change: Effect.Effect<A, E, R>,
) {
  const act = yield* Acting;
  const project = yield* (yield* Projects).get(projectId);
  const accountId = act.accountId ?? project?.accountId ?? null;
  return yield* Effect.provideService(change, Acting, { ...act, accountId });
});

const forget = Effect.fnUntraced(function* (holder: CredentialHolder) {
  const { slug, projectId } = holder;
  const changes = { credential: "user" };
  const row = { action: "connector.credential_removed", target: slug, projectId, changes } as const;
  const removal = (yield* Connectors).removeCredential(holder, yield* Clock.currentTimeMillis);
  yield* removal.pipe(withAudit((isRemoved) => (isRemoved ? row : null)));
});

/** Removes stored credentials, and ends sign-ins at their servers, where these offer it. */
export const forgetLeft = Effect.gen(function* () {
  for (const holder of yield* (yield* Connectors).leftCredentials)
    yield* inProjectAccount(holder, forget(holder));
  for (const holder of yield* (yield* ConnectorGrants).left)
    yield* inProjectAccount(holder, endSignIn(holder));
});
