/** Tokens and previews of a database from before browsers were rows (migrations/0040_browser_sessions.sql). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { loadMigrations, migrate, runMigrations } from "../../src/store/postgres/migrate.ts";
import { BrowserSessions } from "../../src/store/ports/browser-sessions.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

const numbered = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const [ACCOUNT, USER, TOKEN, REVOKED, BROWSER] = [1, 2, 3, 4, 5].map(numbered) as [
  string,
  string,
  string,
  string,
  string,
];
const NOW = Date.UTC(2026, 10, 20, 12);

const write = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`INSERT INTO accounts (id, name, tier, session_cap, created_at) VALUES (${ACCOUNT}, 'a', 'free', 3, now())`;
  yield* sql`
    INSERT INTO users (id, account_id, name, role, created_at) VALUES (${USER}, ${ACCOUNT}, 'u', 'owner', now())`;
  yield* sql`
    INSERT INTO tokens (id, account_id, user_id, kind, origin, name, hash, created_at, revoked_at) VALUES
      (${TOKEN}, ${ACCOUNT}, ${USER}, 'access', 'user', 'laptop', 'kept', now(), NULL),
      (${REVOKED}, ${ACCOUNT}, ${USER}, 'access', 'user', 'lost', 'lost', now(), now())`;
});

const check = Effect.gen(function* () {
  const identity = yield* Identity;
  const browsers = yield* BrowserSessions;
  expect(yield* identity.authenticate("kept", NOW)).toMatchObject({ tokenId: TOKEN, openedBy: null });
  expect(yield* identity.authenticate("lost", NOW)).toBe(null);
  const owner = { accountId: ACCOUNT, userId: null };
  const page = { limit: 10, cursor: null };
  expect((yield* identity.listTokens(owner, page)).items.map(({ id }) => id)).toEqual([TOKEN]);
  expect((yield* browsers.list(USER, { ...page, now: NOW })).items).toEqual([]);
  const session = { id: BROWSER, hash: "cookie", address: null, userAgent: null, now: NOW };
  expect(yield* browsers.open("kept", session)).toEqual({ id: USER, name: "u" });
  expect(yield* browsers.open("lost", { ...session, id: REVOKED })).toBe(null);
  expect(yield* identity.authenticate("cookie", NOW)).toMatchObject({ tokenId: BROWSER, openedBy: TOKEN });
});

it.live("tokens from before the upgrade go on, and sign browsers in", () =>
  Effect.gen(function* () {
    const known = yield* loadMigrations;
    yield* runMigrations(known.filter(({ name }) => name < "0040"));
    yield* write;
    yield* migrate;
    yield* Effect.provide(check, postgresStore);
  }).pipe(Effect.provide(testDatabase("empty"), { local: true })),
);
