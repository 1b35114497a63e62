/** The browsers that are signed in, and one-time links. The rules are those of src/store/ports/people/browser-sessions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { cutNewest, readCursor } from "../../cursor.ts";
import {
  BrowserSessions,
  IDLE_MS,
  LINKS_MAX,
  SESSIONS_MAX,
  type BrowserSession,
  type NewBrowserSession,
  type SignedInBy,
  type SignedInPerson,
} from "../../ports/people/browser-sessions.ts";
import { makeIsAlive } from "./callers.ts";
import { Endings } from "../connection/endings.ts";
import { at, newestPage, toStored } from "../connection/statement.ts";

type Port = (typeof BrowserSessions)["Service"];

/** How many ended rows a sign-in removes at most. */
const CLEARED_MAX = 1000;

interface Opened {
  readonly accountId: string;
  readonly person: SignedInPerson;
  readonly projectId: string | null;
  readonly openedBy: string | null;
  /** The identity at a provider that begins it. Null if a token does. */
  readonly identityId: string | null;
  /** When the token that opens it expires. */
  readonly until: number | null;
  readonly signedInBy: SignedInBy;
}

/**
 * Writes a session, in a transaction that has made sure of its person. Ended sessions are removed as new ones are added,
 * so there are never many. Two concurrent clean-ups skip each other's rows.
 */
export const insertSession = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  session: NewBrowserSession,
  row: Opened,
) {
  const { accountId, person, projectId, openedBy, identityId, signedInBy } = row;
  const now = at(session.now);
  const expiresAt = Math.min(session.now + IDLE_MS, row.until ?? Infinity);
  yield* sql`
    DELETE FROM tokens WHERE id IN (
      SELECT id FROM tokens
      WHERE kind = 'browser' AND (expires_at <= ${now} OR revoked_at IS NOT NULL OR id IN (
        SELECT id FROM tokens WHERE kind = 'browser' AND user_id = ${person.id}
        ORDER BY created_at DESC, id DESC OFFSET ${SESSIONS_MAX - 1}
      ))
      LIMIT ${CLEARED_MAX} FOR UPDATE SKIP LOCKED
    )`;
  // The name of a browser's token is the way in.
  yield* sql`
    INSERT INTO tokens (id, account_id, user_id, project_id, kind, origin, name, hash, created_at, expires_at,
      last_used_at, opened_by, identity_id, address, user_agent)
    VALUES (${session.id}, ${accountId}, ${person.id}, ${projectId}, 'browser', 'user', ${signedInBy}, ${session.hash},
      ${now}, ${at(expiresAt)}, ${now}, ${openedBy}, ${identityId}, ${session.address}, ${session.userAgent})`;
});

interface OpenerRow {
  readonly id: string;
  readonly accountId: string;
  readonly userId: string;
  readonly userName: string;
  readonly projectId: string | null;
  readonly expiresAt: number | null;
}

/** Opens sessions with access tokens. */
const makeOpening = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const isAlive = yield* makeIsAlive;
  const openWith = Effect.fnUntraced(function* (
    by: { readonly hash: string } | { readonly id: string },
    session: NewBrowserSession,
  ) {
    const condition = "id" in by ? sql`token.id = ${by.id}` : sql`token.hash = ${by.hash}`;
    const [opener] = yield* sql<OpenerRow>`
      SELECT token.id, token.account_id AS "accountId", token.user_id AS "userId", users.name AS "userName",
        token.project_id AS "projectId", token.expires_at AS "expiresAt"
      FROM tokens AS token JOIN users ON users.id = token.user_id
      WHERE ${condition} AND token.kind = 'access' AND token.origin = 'user' AND token.sandbox_id IS NULL
        AND ${isAlive(session.now)}`;
    if (opener === undefined) return null;
    const { id, accountId, userId, userName, projectId, expiresAt } = opener;
    const person = { id: userId, name: userName };
    yield* insertSession(sql, session, {
      accountId,
      person,
      projectId,
      openedBy: id,
      identityId: null,
      until: expiresAt,
      signedInBy: "token",
    });
    return person;
  });

  const open: Port["open"] = (hash, session) =>
    openWith({ hash }, session).pipe(sql.withTransaction, toStored("browserSessions.open"));
  const issueLink: Port["issueLink"] = ({ hash, tokenHash, expiresAt, now }) =>
    sql`
      WITH ended AS (
        SELECT hash FROM sign_in_links
        WHERE expires_at <= ${at(now)} OR hash IN (
          SELECT link.hash FROM sign_in_links AS link JOIN tokens ON tokens.id = link.token_id
          WHERE tokens.hash = ${tokenHash} ORDER BY link.created_at DESC, link.hash OFFSET ${LINKS_MAX - 1}
        )
        FOR UPDATE SKIP LOCKED
      ), cleared AS (
        DELETE FROM sign_in_links USING ended WHERE sign_in_links.hash = ended.hash
      )
      INSERT INTO sign_in_links (hash, token_id, created_at, expires_at)
      SELECT ${hash}, id, ${at(now)}::timestamptz, ${at(expiresAt)}::timestamptz FROM tokens
      WHERE hash = ${tokenHash} AND kind = 'access'`.pipe(
      Effect.asVoid,
      toStored("browserSessions.issueLink"),
    );
  const signedInPerson: Port["person"] = (hash, now) =>
    sql<SignedInPerson>`
      SELECT users.id, users.name FROM sign_in_links AS link
      JOIN tokens AS token ON token.id = link.token_id JOIN users ON users.id = token.user_id
      WHERE link.hash = ${hash} AND link.expires_at > ${at(now)} AND token.kind = 'access' AND token.origin = 'user'
        AND token.sandbox_id IS NULL AND ${isAlive(now)}`.pipe(
      Effect.map(([person]) => person ?? null),
      toStored("browserSessions.personOf"),
    );
  const openLink: Port["openLink"] = (hash, session) =>
    Effect.gen(function* () {
      // A second opening waits for the first one's row, and then finds none.
      const [link] = yield* sql<{ readonly tokenId: string }>`
        DELETE FROM sign_in_links WHERE hash = ${hash} AND expires_at > ${at(session.now)}
        RETURNING token_id AS "tokenId"`;
      return link === undefined ? null : yield* openWith({ id: link.tokenId }, session);
    }).pipe(sql.withTransaction, toStored("browserSessions.openLink"));
  return { open, issueLink, person: signedInPerson, openLink };
});

const makeEnding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { say } = yield* Endings;
  /** Removes the rows, and cuts what they opened on all nodes. */
  const remove = (which: Fragment) =>
    sql<{ readonly id: string }>`DELETE FROM tokens WHERE kind = 'browser' AND ${which} RETURNING id`.pipe(
      Effect.tap((rows) => (rows.length > 0 ? say(rows.map(({ id }) => id)) : Effect.void)),
      Effect.map((rows) => rows.length > 0),
      sql.withTransaction,
    );
  const end: Port["end"] = (userId, id) =>
    remove(sql`user_id = ${userId} AND id = ${id}`).pipe(toStored("browserSessions.end"));
  const endAll: Port["endAll"] = (userId) =>
    remove(sql`user_id = ${userId}`).pipe(toStored("browserSessions.endAll"));
  const signOut: Port["signOut"] = (hash) =>
    Effect.gen(function* () {
      const [found] = yield* sql<SignedInPerson & { readonly sessionId: string }>`
        SELECT users.id, users.name, tokens.id AS "sessionId" FROM tokens JOIN users ON users.id = tokens.user_id
        WHERE hash = ${hash} AND kind = 'browser'`;
      return found !== undefined && (yield* remove(sql`hash = ${hash}`)) ? found : null;
    }).pipe(toStored("browserSessions.signOut"));
  return { end, endAll, signOut };
});

export const layer = Layer.effect(
  BrowserSessions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const isAlive = yield* makeIsAlive;
    const list: Port["list"] = Effect.fnUntraced(function* (userId, { cursor, limit, now }) {
      const position = yield* readCursor(cursor);
      const rows = yield* sql<BrowserSession>`
        SELECT id, name AS "signedInBy", opened_by AS "openedBy", created_at AS "createdAt",
          last_used_at AS "lastUsedAt", expires_at AS "expiresAt", address, user_agent AS "userAgent"
        FROM (
          SELECT token.* FROM tokens AS token JOIN users ON users.id = token.user_id
          WHERE token.kind = 'browser' AND token.user_id = ${userId} AND ${isAlive(now)}
        ) AS session
        WHERE true ${newestPage(sql, position, limit)}`;
      return cutNewest(rows, limit);
    }, toStored("browserSessions.list"));
    return { list, ...(yield* makeOpening), ...(yield* makeEnding) };
  }),
);
