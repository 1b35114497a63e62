/** Sessions at the servers of connectors, which are kept for sessions of ours (src/connectors/port.ts U5): whose they are, and until when. */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import type { Connector } from "../../domain/connector/connector.ts";
import { isLive } from "../../domain/session/session.ts";
import type { KeptSession, SessionOwner } from "../../connectors/port.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { projectExecutor } from "./connectors.ts";
import { credentialHolder, openCredential, type Credential } from "./credentials.ts";

/** How long a session at a server stays without a call. */
export const IDLE_MS = 10 * 60_000;

/** Identifies a credential. A renewed token is the same one; a new sign-in and a new value are other ones. */
const credentialIdentity = (credential: Credential): unknown => {
  if (credential.kind === "none") return null;
  if (credential.kind === "value") return credential.value;
  const { grantedAt, grantedBy } = credential.held.stored;
  return { grantedAt, grantedBy };
};

type Caller = Pick<SessionOwner, "projectId" | "sessionId" | "userId">;

/** The owner of a session at the connector's server, for the calls of this caller with this credential. */
export const sessionOwner = (
  { projectId, sessionId, userId }: Caller,
  connector: Connector,
  credential: Credential,
): SessionOwner => {
  const { slug, kind, url, auth, headers } = connector;
  const personId = credentialHolder(connector, projectId, userId)?.personId ?? null;
  const parts = JSON.stringify([kind, url, auth, headers, personId, credentialIdentity(credential)]);
  const stand = createHash("sha256").update(parts).digest("base64url");
  return { projectId, sessionId, userId, slug, stand };
};

/** Whether the session of ours is live, its connector the same, and the credential still the one to use. */
const isWanted = Effect.fnUntraced(function* (owner: SessionOwner) {
  const { projectId, sessionId, userId, slug, stand } = owner;
  const session = yield* (yield* Sessions).get(sessionId);
  if (session === null || session.deletedAt !== null || !isLive(session.status)) return false;
  const connector = (yield* projectExecutor(projectId))?.connectors.find((one) => one.slug === slug);
  if (connector === undefined) return false;
  const openResult = yield* openCredential(projectId, connector, userId);
  return openResult.missing === null && sessionOwner(owner, connector, openResult.credential).stand === stand;
});

/** The owners whose sessions end. @param now in ms since the epoch */
export const endedOwners = Effect.fnUntraced(function* (sessions: readonly KeptSession[], now: number) {
  const owners: SessionOwner[] = [];
  for (const { owner, idleSince } of sessions) {
    const isIdle = idleSince !== null && now - idleSince >= IDLE_MS;
    if (isIdle || !(yield* isWanted(owner))) owners.push(owner);
  }
  return owners;
});
