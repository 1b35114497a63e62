/** Programs that wait for a person to sign them in. The rules are those of src/store/ports/people/device-logins.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  crowdedOut,
  EARLY_MS,
  LOGIN_LIFE_MS,
  MISSES_MAX,
  MISSES_MS,
  POLL_MS,
  SLOWER_MS,
} from "../../../domain/person/device-login.ts";
import {
  DeviceLogins,
  type ClaimResult,
  type DeviceGrant,
  type DeviceLogin,
  type NewDeviceLogin,
  type TypedCode,
} from "../../ports/people/device-logins.ts";
import { makeLiveToken } from "./callers.ts";
import { at, toStored } from "../connection/statement.ts";
import { insertToken } from "./identity.ts";

type Port = (typeof DeviceLogins)["Service"];

/** How many ended rows a new login removes at most. */
const CLEARED_MAX = 1000;

/** Ended logins are removed as new ones are added. Two concurrent clean-ups skip each other's rows. */
const begin = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, login: NewDeviceLogin) {
  const now = at(login.now);
  const waiting = yield* sql<{ readonly id: string; readonly address: string | null }>`
    SELECT id, address FROM device_logins WHERE expires_at > ${now} ORDER BY expires_at, id`;
  yield* sql`
    DELETE FROM device_logins WHERE id IN (
      SELECT id FROM device_logins WHERE expires_at <= ${now} OR id = ANY(${crowdedOut(waiting)}::uuid[])
      LIMIT ${CLEARED_MAX} FOR UPDATE SKIP LOCKED
    )`;
  yield* sql`
    INSERT INTO device_logins (id, device_hash, user_hash, client, address, user_agent, created_at, expires_at,
      next_poll_at, poll_ms)
    VALUES (${login.id}, ${login.deviceHash}, ${login.userHash}, ${login.client}, ${login.address}, ${login.userAgent},
      ${now}, ${at(login.now + LOGIN_LIFE_MS)}, ${now}, ${POLL_MS})`;
});

interface MissesRow {
  readonly misses: number;
  readonly since: number | null;
}

/** The login that the person means. Her row is locked, so that concurrent guesses are counted one by one. */
const find = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { userId, userHash, now }: TypedCode) {
  const [person] = yield* sql<MissesRow>`
    SELECT code_misses AS misses, code_misses_since AS since FROM users
    WHERE id = ${userId} AND deactivated_at IS NULL FOR UPDATE`;
  if (person === undefined) return null;
  const misses = person.since !== null && person.since > now - MISSES_MS ? person.misses : 0;
  if (misses >= MISSES_MAX) return "too_many" as const;
  const [login] = yield* sql<DeviceLogin>`
    SELECT id, client, address, user_agent AS "userAgent", created_at AS "createdAt", expires_at AS "expiresAt"
    FROM device_logins
    WHERE user_hash = ${userHash} AND state = 'waiting' AND expires_at > ${at(now)} FOR UPDATE`;
  if (login !== undefined) return login;
  yield* sql`
    UPDATE users SET code_misses = ${misses + 1},
      code_misses_since = ${misses === 0 ? at(now) : at(person.since)} WHERE id = ${userId}`;
  return null;
});

const decide = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { grant, ...typed }: TypedCode & { readonly grant: DeviceGrant | null },
) {
  const login = yield* find(sql, typed);
  if (login === null || login === "too_many") return login;
  yield* sql`
    UPDATE device_logins SET state = ${grant === null ? "denied" : "approved"}, user_id = ${typed.userId},
      decided_with = ${typed.tokenId},
      project_id = ${grant?.projectId ?? null}, token_expires_at = ${at(grant?.expiresAt ?? null)}
    WHERE id = ${login.id}`;
  return login;
});

interface ClaimRow {
  readonly id: string;
  readonly client: string;
  readonly state: "waiting" | "approved" | "denied";
  readonly userId: string | null;
  readonly decidedWith: string | null;
  readonly projectId: string | null;
  readonly tokenExpiresAt: number | null;
  readonly nextPollAt: number;
  readonly pollMs: number;
}

type Claim = Parameters<Port["claim"]>[0];

/** The program of a login without a decision. One that asks too early must wait longer from then on. */
const wait = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, nextPollAt, pollMs }: ClaimRow,
  now: number,
) {
  const isEarly = now < nextPollAt - EARLY_MS;
  const next = pollMs + (isEarly ? SLOWER_MS : 0);
  yield* sql`UPDATE device_logins SET poll_ms = ${next}, next_poll_at = ${at(now + next)} WHERE id = ${id}`;
  return { kind: isEarly ? "too_early" : "waiting" } satisfies ClaimResult;
});

/** Whether the browser or token that approved has not ended (ports/people/device-logins.ts D2). Null if it was not kept. */
const makeIsGranted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const liveToken = yield* makeLiveToken;
  return (tokenId: string | null, now: number) =>
    tokenId === null
      ? Effect.succeed(true)
      : Effect.map(sql`${liveToken(tokenId, now)} FOR SHARE OF token`, (rows) => rows.length > 0);
});

type IsGranted = Effect.Success<typeof makeIsGranted>;

const claim = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  isGranted: IsGranted,
  { deviceHash, token, now }: Claim,
) {
  // A second request waits here for the first one, and then finds no row.
  const [login] = yield* sql<ClaimRow>`
    SELECT id, client, state, user_id AS "userId", decided_with AS "decidedWith", project_id AS "projectId", token_expires_at AS "tokenExpiresAt",
      next_poll_at AS "nextPollAt", poll_ms AS "pollMs"
    FROM device_logins WHERE device_hash = ${deviceHash} AND expires_at > ${at(now)} FOR UPDATE`;
  if (login === undefined) return { kind: "unknown" } satisfies ClaimResult;
  const { id, client, state, userId, projectId, tokenExpiresAt: expiresAt } = login;
  if (state === "waiting") return yield* wait(sql, login, now);
  yield* sql`DELETE FROM device_logins WHERE id = ${id}`;
  // A deactivation waits for this token, and then ends it.
  const [person] = yield* sql<{ readonly accountId: string; readonly name: string }>`
    SELECT account_id AS "accountId", name FROM users WHERE id = ${userId} AND deactivated_at IS NULL FOR SHARE`;
  const isOpen = yield* isGranted(login.decidedWith, now);
  if (state === "denied" || userId === null || person === undefined || !isOpen)
    return { kind: "denied" } satisfies ClaimResult;
  const { accountId, name } = person;
  const grant = { accountId, projectId, expiresAt };
  yield* insertToken(sql, { ...token, ...grant, userId, name: client, origin: "user", now });
  return { kind: "token", ...grant, user: { id: userId, name }, client } satisfies ClaimResult;
});

export const layer = Layer.effect(
  DeviceLogins,
  Effect.map(Effect.all([SqlClient.SqlClient, makeIsGranted]), ([sql, isGranted]) => ({
    begin: (login) => begin(sql, login).pipe(sql.withTransaction, toStored("deviceLogins.begin")),
    look: (code) => find(sql, code).pipe(sql.withTransaction, toStored("deviceLogins.look")),
    decide: (request) => decide(sql, request).pipe(sql.withTransaction, toStored("deviceLogins.decide")),
    claim: (request) =>
      claim(sql, isGranted, request).pipe(sql.withTransaction, toStored("deviceLogins.claim")),
  })),
);
