/** Accounts and their users, across all accounts, in memory: see postgres/people/accounts.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Accounts, type User, type Account } from "../../../../src/store/ports/people/accounts.ts";
import type { PageRequest } from "../../../../src/store/ports/page.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type AccountRow, type UserRow } from "../tables.ts";

const accountOf = (id: string, { name, tier, cap, activeSessions, queuedFires }: AccountRow): Account => ({
  id,
  name,
  tier,
  sessionCap: cap,
  activeSessions,
  queuedFires,
});

const userOf = (id: string, { accountId, name, role }: UserRow): User => ({ id, accountId, name, role });

/** A page of rows from a table that keeps them in order of insertion. */
const newestFirst = Effect.fnUntraced(function* <A extends { readonly id: string }>(
  rows: readonly A[],
  request: PageRequest,
) {
  const places = new Map(rows.map((row, index) => [row, index]));
  return yield* pageFrom(rows, request, (row) => ({ at: places.get(row) ?? 0, id: row.id }));
});

export const layer = Layer.effect(
  Accounts,
  Effect.map(Tables, (tables) => ({
    list: (request) =>
      Effect.suspend(() =>
        newestFirst(
          [...tables.accounts].map(([id, row]) => accountOf(id, row)),
          request,
        ),
      ),
    create: ({ id, name, tier, cap }) =>
      Effect.sync(() => {
        const row = {
          name,
          tier,
          cap,
          activeSessions: 0,
          queuedFires: 0,
          storedRequestBytes: 0,
          drainedTurns: 0,
        };
        tables.accounts.set(id, row);
        return accountOf(id, row);
      }),
    users: (accountId, request) =>
      Effect.suspend(() =>
        newestFirst(
          [...tables.users].flatMap(([id, row]): User[] =>
            row.accountId === accountId ? [userOf(id, row)] : [],
          ),
          request,
        ),
      ),
    user: (id) =>
      Effect.sync(() => {
        const row = tables.users.get(id);
        return row === undefined ? null : userOf(id, row);
      }),
    createUser: ({ now: createdAt, ...user }) =>
      Effect.sync(() => {
        const { id, ...row } = user;
        if (!tables.accounts.has(user.accountId)) return null;
        tables.users.set(id, { ...row, createdAt, deactivatedAt: null });
        return user;
      }),
  })),
);
