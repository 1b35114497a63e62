/** Accounts, users and tokens. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { cutNewest, readCursor } from "../../cursor.ts";
import type { Grant } from "../../ports/people/grants.ts";
import { Identity, type NewToken, type Token } from "../../ports/people/identity.ts";
import type { Account } from "../../ports/people/accounts.ts";
import { makeCallers, makeIsAlive } from "./callers.ts";
import { Endings } from "../connection/endings.ts";
import { ProjectChanges } from "../projects/project-changes.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, insertedRow, jsonb, newestPage, toStored } from "../connection/statement.ts";
import { roleRank, TOKEN_ROLE } from "./roles.ts";

const TOKEN_COLUMNS = `
  id, name, origin, user_id AS "userId", project_id AS "projectId", created_at AS "createdAt", expires_at AS "expiresAt",
  last_used_at AS "lastUsedAt"`;

const makeEnded = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const isAlive = yield* makeIsAlive;
  return Effect.fnUntraced(function* (grants: readonly Grant[], now: number) {
    const grantRows = grants.map(({ credential, projectId, needs, session }, place) => ({
      place,
      token: credential.kind === "token" ? credential.id : null,
      password: credential.kind === "password" ? credential.hash : null,
      project: projectId,
      needs,
      session: session?.id ?? null,
      sandbox: session?.sandboxId ?? null,
    }));
    const rows = yield* sql<{ readonly place: number }>`
      SELECT held.place
      FROM jsonb_to_recordset(${jsonb(grantRows)}::jsonb)
        AS held (place integer, token uuid, password text, project uuid, needs text, session uuid, sandbox uuid)
      WHERE NOT (
        EXISTS (
          SELECT FROM tokens AS token JOIN users ON users.id = token.user_id
          WHERE token.id = held.token AND ${isAlive(now)} AND (held.project IS NULL AND (held.needs <> 'owner' OR users.role = 'owner')
            OR (token.project_id IS NULL OR token.project_id = held.project) AND EXISTS (
              SELECT FROM projects AS project
              WHERE project.id = held.project AND project.account_id = token.account_id
                AND ${sql.literal(`${roleRank(TOKEN_ROLE)} >= ${roleRank("held.needs")}`)}
            ))
        ) OR EXISTS (
          SELECT FROM clone_credentials AS minted
          JOIN session_sandboxes AS sandbox ON sandbox.id = minted.sandbox_id
          JOIN project_sessions AS session ON session.id = minted.session_id
          WHERE minted.hash = held.password AND minted.project_id = held.project AND minted.expires_at > ${at(now)}
            AND sandbox.status IN ('provisioning', 'active') AND session.status IN ('provisioning', 'running')
        )
      ) OR held.session IS NOT NULL AND NOT EXISTS (
        SELECT FROM project_sessions AS reached
        WHERE reached.id = held.session AND reached.project_id = held.project AND reached.deleted_at IS NULL
          AND reached.status = 'running' AND reached.state_context ->> 'sandboxId' = held.sandbox::text
      )`;
    const places = new Set(rows.map(({ place }) => place));
    return grants.filter((_, place) => places.has(place));
  });
});

/** A person has signed in at a provider (ports/people/identity.ts, TokenSignIn). The clocks of nodes differ: it never moves back. */
export const noteSignIn = (sql: SqlClient.SqlClient, userId: string, now: number) =>
  sql`UPDATE users SET signed_in_at = greatest(signed_in_at, ${at(now)}) WHERE id = ${userId}`;

type BootstrapRequest = Parameters<(typeof Identity)["Service"]["bootstrap"]>[0];

/** Also of the person who accepts an invitation (people.ts). */
export const insertToken = (sql: SqlClient.SqlClient, token: NewToken) => sql<Token>`
  INSERT INTO tokens (id, account_id, user_id, project_id, kind, origin, name, hash, created_at, expires_at)
  VALUES (${token.id}, ${token.accountId}, ${token.userId}, ${token.projectId}, 'access', ${token.origin},
    ${token.name}, ${token.hash}, ${at(token.now)}, ${at(token.expiresAt)})
  RETURNING ${sql.literal(TOKEN_COLUMNS)}`;

const bootstrap = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, request: BootstrapRequest) {
  // If two services start on one empty database, the second waits here and then finds the account.
  yield* sql`LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE`;
  const accounts = yield* sql`SELECT id FROM accounts LIMIT 1`;
  if (accounts.length > 0) return false;
  yield* sql`
    INSERT INTO accounts (id, name, tier, session_cap, created_at)
    VALUES (${request.accountId}, 'default', ${request.tier}, ${request.cap}, ${at(request.now)})`;
  yield* sql`
    INSERT INTO users (id, account_id, name, role, created_at)
    VALUES (${request.userId}, ${request.accountId}, 'admin', 'owner', ${at(request.now)})`;
  yield* insertToken(sql, {
    id: request.tokenId,
    accountId: request.accountId,
    userId: request.userId,
    projectId: null,
    name: "first token",
    hash: request.tokenHash,
    origin: "user",
    expiresAt: null,
    now: request.now,
  });
  return true;
});

const makeTokens = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { say } = yield* Endings;
  const isUser = (userId: string | null) => (userId === null ? sql`true` : sql`user_id = ${userId}`);
  const listTokens: (typeof Identity)["Service"]["listTokens"] = Effect.fnUntraced(function* (
    { accountId, userId },
    { cursor, limit },
  ) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Token>`
        SELECT ${sql.literal(TOKEN_COLUMNS)} FROM tokens
        WHERE account_id = ${accountId} AND ${isUser(userId)} AND kind = 'access' AND sandbox_id IS NULL AND revoked_at IS NULL
          ${newestPage(sql, position, limit)}`;
    return cutNewest(rows, limit);
  }, toStored("identity.listTokens"));
  const createToken: (typeof Identity)["Service"]["createToken"] = (token) =>
    insertToken(sql, token).pipe(Effect.flatMap(insertedRow), toStored("identity.createToken"));
  const deleteToken: (typeof Identity)["Service"]["deleteToken"] = ({ accountId, userId }, id, now) =>
    sql`
      UPDATE tokens SET revoked_at = ${at(now)}
      WHERE id = ${id} AND account_id = ${accountId} AND ${isUser(userId)} AND kind = 'access' AND sandbox_id IS NULL AND revoked_at IS NULL
      RETURNING id`.pipe(
      Effect.tap((rows) => (rows.length > 0 ? say([id]) : Effect.void)),
      sql.withTransaction,
      Effect.map((rows) => rows.length > 0),
      toStored("identity.deleteToken"),
    );
  return { listTokens, createToken, deleteToken };
});

const makeSignIns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const countSignIns: (typeof Identity)["Service"]["countSignIns"] = (from) =>
    (from === null
      ? sql`UPDATE users SET signed_in_at = NULL WHERE signed_in_at IS NOT NULL`
      : sql`UPDATE users SET signed_in_at = ${at(from)} WHERE signed_in_at IS NULL`
    ).pipe(Effect.asVoid, toStored("identity.countSignIns"));
  const letIn: (typeof Identity)["Service"]["letIn"] = (userId, now) =>
    noteSignIn(sql, userId, now).pipe(Effect.asVoid, toStored("identity.letIn"));
  return { countSignIns, letIn };
});

export const layer = Layer.effect(
  Identity,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { arrive, authenticate, endedToken } = yield* makeCallers;
    const endedGrants = yield* makeEnded;
    const { listen } = yield* Endings;
    const changes = yield* ProjectChanges;
    return {
      ...(yield* makeTokens),
      ...(yield* makeSignIns),
      endedToken: (hash, now) => endedToken(hash, now).pipe(toStored("identity.endedToken")),
      authenticate: (hash, now) =>
        authenticate(hash, now).pipe(onSharedConnection, toStored("identity.authenticate")),
      arrive: (hash, now, path) =>
        arrive(hash, now, path).pipe(onSharedConnection, toStored("identity.arrive")),
      ended: (grants, now) => endedGrants(grants, now).pipe(toStored("identity.ended")),
      endings: listen,
      bootstrap: (request) =>
        sql.withTransaction(bootstrap(sql, request)).pipe(toStored("identity.bootstrap")),
      account: (id) =>
        sql<Account>`
          SELECT id, name, tier, session_cap AS "sessionCap", active_sessions AS "activeSessions",
            queued_fires AS "queuedFires"
          FROM accounts WHERE id = ${id}`.pipe(
          Effect.map(([row]) => row ?? null),
          toStored("identity.account"),
        ),
      rename: (accountId, name) =>
        sql`UPDATE accounts SET name = ${name} WHERE id = ${accountId}`.pipe(
          Effect.asVoid,
          toStored("identity.rename"),
        ),
      setTier: (accountId, tier, cap) =>
        sql`UPDATE accounts SET tier = ${tier}, session_cap = ${cap} WHERE id = ${accountId}`.pipe(
          // The tier decides whether fires of the account's projects have a model.
          Effect.andThen(changes.markAccount(accountId)),
          sql.withTransaction,
          toStored("identity.setTier"),
        ),
      applyCaps: (caps) =>
        sql`
          UPDATE accounts SET session_cap = cap.value::integer
          FROM jsonb_each_text(${jsonb(caps)}::jsonb) AS cap (tier, value)
          WHERE accounts.tier = cap.tier AND session_cap <> cap.value::integer`.pipe(
          Effect.asVoid,
          toStored("identity.applyCaps"),
        ),
    };
  }),
);
