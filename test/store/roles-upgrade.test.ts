/** A database from before roles (migrations/0036_roles.sql): its people, their tokens, and what they made. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { Identity } from "../../src/store/ports/identity.ts";
import { People } from "../../src/store/ports/people.ts";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { loadMigrations, migrate, runMigrations } from "../../src/store/postgres/migrate.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

const numbered = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const [ACCOUNT, ADA, BEN, PROJECT] = [1, 2, 3, 4].map(numbered) as [string, string, string, string];
const NOW = Date.UTC(2026, 10, 20, 12);

const write = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`INSERT INTO accounts (id, name, tier, session_cap, created_at) VALUES (${ACCOUNT}, 'a', 'free', 3, now())`;
  yield* sql`
    INSERT INTO users (id, account_id, name, created_at) VALUES
      (${ADA}, ${ACCOUNT}, 'Ada', '2020-01-01'), (${BEN}, ${ACCOUNT}, 'Ben', '2020-01-02')`;
  yield* sql`
    INSERT INTO projects (id, account_id, created_by, name, status, repository, default_branch, created_at, updated_at)
    VALUES (${PROJECT}, ${ACCOUNT}, ${BEN}, 'p', 'active', '{"kind": "hosted"}', 'main', now(), now())`;
  yield* sql`
    INSERT INTO tokens (id, account_id, user_id, project_id, kind, origin, name, hash, created_at) VALUES
      (gen_random_uuid(), ${ACCOUNT}, ${ADA}, NULL, 'access', 'user', 'laptop', 'ada', now()),
      (gen_random_uuid(), ${ACCOUNT}, ${BEN}, ${PROJECT}, 'access', 'user', 'ci', 'ben', now())`;
});

/** How many rows each table has. Tables that later migrations add are empty before. */
const counted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const tables = ["accounts", "users", "projects", "tokens"];
  const rows = yield* Effect.forEach(tables, (table) =>
    sql.unsafe<{ readonly count: number }>(`SELECT count(*)::integer AS count FROM ${table}`),
  );
  return rows.map(([row]) => row?.count);
});

const check = Effect.gen(function* () {
  const identity = yield* Identity;
  const path = { projectId: PROJECT, sessionId: null };
  expect(yield* identity.arrive("ada", NOW, path)).toMatchObject({
    caller: { user: { id: ADA }, accountRole: "owner", projectId: null },
    reached: { role: "owner" },
  });
  // A token of one project stays one.
  expect(yield* identity.arrive("ben", NOW, path)).toMatchObject({
    caller: { user: { id: BEN }, accountRole: "owner", projectId: PROJECT },
    reached: { role: "owner" },
  });
  const people = yield* (yield* People).list(ACCOUNT, { limit: 10, cursor: null });
  expect(people.items.map(({ name, role, deactivatedAt }) => [name, role, deactivatedAt])).toEqual([
    ["Ben", "owner", null],
    ["Ada", "owner", null],
  ]);
});

it.live("everyone from before roles is an owner, her tokens go on, and nothing is lost [T11]", () =>
  Effect.gen(function* () {
    const known = yield* loadMigrations;
    yield* runMigrations(known.filter(({ name }) => name < "0036"));
    yield* write;
    const before = yield* counted;
    yield* migrate;
    expect(yield* counted).toEqual(before);
    yield* Effect.provide(check, postgresStore);
  }).pipe(Effect.provide(testDatabase("empty"), { local: true })),
);
