/** People, identities and browsers of a database from before sign-ins had times (migrations/0044_sign_in_times.sql). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { Identities } from "../../src/store/ports/identities.ts";
import { Identity, TokenSignIn } from "../../src/store/ports/identity.ts";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { loadMigrations, migrate, runMigrations } from "../../src/store/postgres/migrate.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

const ACCOUNT = "00000000-0000-7000-8000-000000000001";
const USER = "00000000-0000-7000-8000-000000000002";
const NOW = Date.UTC(2026, 10, 20, 12);
const MONTH_MS = 30 * 86_400_000;

const write = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`INSERT INTO accounts (id, name, tier, session_cap, created_at) VALUES (${ACCOUNT}, 'a', 'free', 3, now())`;
  yield* sql`
    INSERT INTO users (id, account_id, name, role, created_at)
    VALUES (${USER}, ${ACCOUNT}, 'Ada', 'owner', '2020-01-01')`;
  yield* sql`
    INSERT INTO identities (issuer, subject, user_id, created_at) VALUES ('https://sso.example.com', 'ada', ${USER}, now())`;
  yield* sql`
    INSERT INTO tokens (id, account_id, user_id, kind, origin, name, hash, created_at) VALUES
      (gen_random_uuid(), ${ACCOUNT}, ${USER}, 'access', 'user', 'laptop', 'kept', now())`;
  yield* sql`
    INSERT INTO tokens (id, account_id, user_id, kind, origin, name, hash, created_at, expires_at, opened_by)
    SELECT gen_random_uuid(), ${ACCOUNT}, ${USER}, 'browser', 'user', way, way, now(), '2030-01-01', opener
    FROM (VALUES ('oidc', NULL), ('token', (SELECT id FROM tokens WHERE hash = 'kept'))) AS way (way, opener)`;
});

const check = Effect.gen(function* () {
  const identity = yield* Identity;
  const state = (hash: string, now = NOW) =>
    Effect.map(identity.authenticate(hash, now), (caller) => caller !== null);
  // As the first start with a provider does.
  yield* identity.countSignIns(NOW);
  expect(yield* state("kept", NOW + MONTH_MS - 1)).toBe(true);
  expect(yield* state("kept", NOW + MONTH_MS)).toBe(false);
  expect([yield* state("oidc"), yield* state("token")]).toEqual([false, true]);
  const identities = yield* (yield* Identities).list(USER);
  expect(identities).toMatchObject([{ subject: "ada", name: "Ada", signedInAt: null }]);
});

it.live("the upgrade locks no person out, and identities go on [T18]", () =>
  Effect.gen(function* () {
    const known = yield* loadMigrations;
    yield* runMigrations(known.filter(({ name }) => name < "0044"));
    yield* write;
    yield* migrate;
    const store = Layer.provide(postgresStore, Layer.succeed(TokenSignIn, MONTH_MS));
    yield* Effect.provide(check, store);
  }).pipe(Effect.provide(testDatabase("empty"), { local: true })),
);
