/** The callers of requests: from the hash of a token to its owner, and to what the request's path names. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { IDLE_MS, LIFE_MS } from "../../ports/people/browser-sessions.ts";
import {
  TokenSignIn,
  type EndedToken,
  type EndedWhy,
  type RequestPath,
  type Principal,
  type PathRows,
} from "../../ports/people/identity.ts";
import { at } from "../connection/statement.ts";
import { TOKEN_ROLE } from "./roles.ts";
import {
  shownColumns,
  readShownSession,
  withConversations,
  type ShownRow,
} from "../sessions/session-rows.ts";

/** How rarely last_used_at is written: it shows people that a token is in use, not when to the second. */
const LAST_USED_STEP_MS = 60_000;

/**
 * The token's row is in scope as `token`, its person's as `users`. A deactivated person's tokens have ended, but for those
 * of her sessions' sandboxes: they end with the session, which is stopped, and until then save its work.
 *
 * A sandbox's token ends with the sandbox or with the session, whichever ends first. A stop during the boot ends the
 * session at once, and the sandbox as soon as it is told (threats.md T03, I15). Other tokens need no look at either.
 * A browser's session ends with the token that opened it. Where sign-ins count (ports/people/identity.ts, TokenSignIn), a person's tokens
 * and the sessions that they opened end some time after her last one. A session that a provider opened is a sign-in itself.
 */
export const makeIsAlive = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const signInMs = yield* TokenSignIn;
  const isSignedIn = (now: number) =>
    signInMs === null
      ? sql.literal("")
      : sql`AND (token.kind = 'browser' AND token.opened_by IS NULL
          OR greatest(users.signed_in_at, users.created_at) > ${at(now - signInMs)})`;
  return (now: number) => sql`
  token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > ${at(now)})
  AND (token.opened_by IS NULL OR EXISTS (
    SELECT FROM tokens AS opener WHERE opener.id = token.opened_by
      AND opener.revoked_at IS NULL AND (opener.expires_at IS NULL OR opener.expires_at > ${at(now)})
  ))
  AND (CASE WHEN token.sandbox_id IS NULL THEN users.deactivated_at IS NULL ${isSignedIn(now)} ELSE EXISTS (
    SELECT FROM session_sandboxes AS sandbox JOIN project_sessions AS session ON session.id = token.session_id
    WHERE sandbox.id = token.sandbox_id
      AND sandbox.status IN ('provisioning', 'active') AND session.status IN ('provisioning', 'running')
  ) END)`;
});

/** The token of this id, as `token`, if it has not ended. A subquery, or a statement to which `FOR SHARE OF token` can be added. */
export const makeLiveToken = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const isAlive = yield* makeIsAlive;
  return (id: string | ReturnType<typeof sql.literal>, now: number) => sql`
    SELECT token.user_id FROM tokens AS token JOIN users ON users.id = token.user_id
    WHERE token.id = ${id} AND ${isAlive(now)}`;
});

/** No name is one of a session's columns. */
const CALLER_COLUMNS = `
  token.id AS "tokenId", token.kind AS "tokenKind", token.origin AS "tokenOrigin", token.account_id AS "callerAccount",
  token.user_id AS "userId", users.name AS "userName", token.project_id AS "boundTo", token.session_id AS "ownSession",
  token.sandbox_id AS "ownSandbox", token.last_used_at AS "lastUsedAt", token.expires_at AS "expiresAt",
  token.opened_by AS "openedBy", users.role AS "accountRole",
  CASE WHEN token.kind = 'browser' THEN (SELECT expires_at FROM tokens AS opener WHERE opener.id = token.opened_by)
    ELSE token.expires_at END AS "reachEndsAt"`;

interface CallerRow {
  readonly tokenId: string;
  readonly tokenKind: Principal["kind"];
  readonly tokenOrigin: Principal["origin"];
  readonly callerAccount: string;
  readonly userId: string;
  readonly userName: string;
  readonly accountRole: Principal["accountRole"];
  readonly boundTo: string | null;
  readonly ownSession: string | null;
  readonly ownSandbox: string | null;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly openedBy: string | null;
  readonly reachEndsAt: number | null;
}

/** The session's columns are null if the path's project has no such session, and absent if the path names none. */
type ArrivalRow = CallerRow &
  Partial<Pick<PathRows, "role" | "mergeRole">> &
  (ShownRow | { readonly id?: null });

/** The parts of a row: the caller, the token's last use, and what was read of the path. */
const splitRow = (row: ArrivalRow) => {
  const { tokenId, tokenKind, tokenOrigin, callerAccount, userId, userName, accountRole, ...others } = row;
  const { boundTo, ownSession, ownSandbox, expiresAt, openedBy, reachEndsAt, lastUsedAt, ...reached } =
    others;
  const { role, mergeRole, ...session } = reached;
  const caller: Principal = {
    tokenId,
    kind: tokenKind,
    origin: tokenOrigin,
    accountId: callerAccount,
    user: { id: userId, name: userName },
    accountRole,
    projectId: boundTo,
    sessionId: ownSession,
    sandboxId: ownSandbox,
    expiresAt,
    openedBy,
    reachEndsAt,
  };
  return { caller, lastUsedAt, role: role ?? null, mergeRole: mergeRole ?? "owner", session };
};

/** `authenticate`, `arrive` and `endedToken` of the port. */
export const makeCallers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const isAlive = yield* makeIsAlive;
  const columns = sql.literal(CALLER_COLUMNS);
  const tokens = sql.literal("tokens AS token JOIN users ON users.id = token.user_id");
  const role = sql.literal(`CASE WHEN project.id IS NOT NULL THEN ${TOKEN_ROLE} END`);

  /** A use of a browser's session moves its expiry (ports/people/browser-sessions.ts B1). */
  const noteUse = ({ tokenId, tokenKind, lastUsedAt }: CallerRow, now: number) => {
    if (lastUsedAt !== null && lastUsedAt >= now - LAST_USED_STEP_MS) return Effect.void;
    return tokenKind === "browser"
      ? sql`
          UPDATE tokens SET last_used_at = ${at(now)}, expires_at = LEAST(
            ${at(now + IDLE_MS)}::timestamptz, created_at + ${LIFE_MS}::integer * interval '1 ms',
            (SELECT opener.expires_at FROM tokens AS opener WHERE opener.id = tokens.opened_by)
          ) WHERE id = ${tokenId}`
      : sql`UPDATE tokens SET last_used_at = ${at(now)} WHERE id = ${tokenId}`;
  };

  const authenticate = Effect.fnUntraced(function* (hash: string, now: number) {
    const [row] = yield* sql<CallerRow>`
      SELECT ${columns} FROM ${tokens} WHERE token.hash = ${hash} AND ${isAlive(now)}`;
    if (row === undefined) return null;
    yield* noteUse(row, now);
    return splitRow(row).caller;
  });

  /** The session is read only if its account is the caller's. */
  const sessionAt = ({ projectId, sessionId }: RequestPath) => sql`LEFT JOIN LATERAL (
    SELECT ${sql.literal(shownColumns("session"))} FROM project_sessions AS session
    ${sql.literal(withConversations("session"))}
    WHERE session.id = ${sessionId} AND project_id = ${projectId} AND account_id = token.account_id AND deleted_at IS NULL
  ) AS reached ON true`;

  const arrive = Effect.fnUntraced(function* (hash: string, now: number, path: RequestPath) {
    const [row] = yield* sql<ArrivalRow>`
      SELECT ${columns}, ${role} AS role, project.merge_role AS "mergeRole"
        ${sql.literal(path.sessionId === null ? "" : ", reached.*")}
      FROM ${tokens}
      LEFT JOIN projects AS project ON project.id = ${path.projectId} AND project.account_id = token.account_id
      ${path.sessionId === null ? sql.literal("") : sessionAt(path)}
      WHERE token.hash = ${hash} AND ${isAlive(now)}`;
    if (row === undefined) return null;
    yield* noteUse(row, now);
    const { caller, role: held, mergeRole, session } = splitRow(row);
    const isThere = held !== null && "turnState" in session && session.id !== null;
    return {
      caller,
      reached: { path, role: held, mergeRole, session: isThere ? readShownSession(session) : null },
    };
  });

  const endedToken = Effect.fnUntraced(function* (hash: string, now: number) {
    const [row] = yield* sql<CallerRow & { readonly why: EndedWhy }>`
      SELECT ${columns}, CASE
        WHEN token.sandbox_id IS NOT NULL THEN 'session_ended'
        WHEN users.deactivated_at IS NOT NULL THEN 'deactivated'
        WHEN token.revoked_at IS NOT NULL THEN 'revoked'
        WHEN token.expires_at <= ${at(now)} THEN 'expired'
        WHEN opener.revoked_at IS NOT NULL OR opener.expires_at <= ${at(now)} THEN 'signed_out'
        ELSE 'sign_in_required' END AS why
      FROM ${tokens} LEFT JOIN tokens AS opener ON opener.id = token.opened_by
      WHERE token.hash = ${hash} AND NOT (${isAlive(now)})`;
    if (row === undefined) return null;
    const { why, ...others } = row;
    return { ...splitRow(others).caller, why } satisfies EndedToken;
  });

  return { authenticate, arrive, endedToken };
});
