/** Accounts and users, across all accounts. identity.ts has the queries for one account. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Accounts, type User, type Account } from "../../ports/people/accounts.ts";
import { cutNewest, readCursor } from "../../cursor.ts";
import type { PageRequest } from "../../ports/page.ts";
import { at, insertedRow, newestPage, toStored } from "../connection/statement.ts";

const ACCOUNT_COLUMNS = `
  id, name, tier, session_cap AS "sessionCap", active_sessions AS "activeSessions", queued_fires AS "queuedFires"`;
const USER_COLUMNS = `id, account_id AS "accountId", name, role`;

type Instant = { readonly createdAt: number };

const toPage = <Row extends Instant & { readonly id: string }>(rows: readonly Row[], limit: number) => {
  const { items, nextCursor } = cutNewest(rows, limit);
  return { items: items.map(({ createdAt: _, ...row }) => row), nextCursor };
};

const makeAccounts = (sql: SqlClient.SqlClient) => {
  const list = Effect.fnUntraced(function* ({ cursor, limit }: PageRequest) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Account & Instant>`
      SELECT ${sql.literal(ACCOUNT_COLUMNS)}, created_at AS "createdAt" FROM accounts
      WHERE true ${newestPage(sql, position, limit)}`;
    return toPage(rows, limit);
  }, toStored("accounts.list"));
  const create: (typeof Accounts)["Service"]["create"] = ({ id, name, tier, cap, now }) =>
    sql<Account>`
      INSERT INTO accounts (id, name, tier, session_cap, created_at)
      VALUES (${id}, ${name}, ${tier}, ${cap}, ${at(now)})
      RETURNING ${sql.literal(ACCOUNT_COLUMNS)}`.pipe(
      Effect.flatMap(insertedRow),
      toStored("accounts.create"),
    );
  return { list, create };
};

const makeUsers = (sql: SqlClient.SqlClient) => {
  const users = Effect.fnUntraced(function* (accountId: string, { cursor, limit }: PageRequest) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<User & Instant>`
      SELECT ${sql.literal(USER_COLUMNS)}, created_at AS "createdAt" FROM users
      WHERE account_id = ${accountId} ${newestPage(sql, position, limit)}`;
    return toPage(rows, limit);
  }, toStored("accounts.users"));
  const user: (typeof Accounts)["Service"]["user"] = (id) =>
    sql<User>`SELECT ${sql.literal(USER_COLUMNS)} FROM users WHERE id = ${id}`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("accounts.user"),
    );
  const createUser: (typeof Accounts)["Service"]["createUser"] = ({ id, accountId, name, role, now }) =>
    sql<User>`
      INSERT INTO users (id, account_id, name, role, created_at)
      SELECT ${id}::uuid, accounts.id, ${name}, ${role}, ${at(now)}::timestamptz FROM accounts WHERE accounts.id = ${accountId}
      RETURNING ${sql.literal(USER_COLUMNS)}`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("accounts.createUser"),
    );
  return { users, user, createUser };
};

export const layer = Layer.effect(
  Accounts,
  Effect.map(SqlClient.SqlClient, (sql) => ({ ...makeAccounts(sql), ...makeUsers(sql) })),
);
