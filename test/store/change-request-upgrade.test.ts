/** Change requests of a database that an older version wrote (migrations/0028_change_request_actors.sql). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { loadMigrations, migrate, runMigrations } from "../../src/store/postgres/migrate.ts";
import { ChangeRequests } from "../../src/store/ports/change-requests.ts";
import { tellRequest } from "../support/world/change-requests.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

const numbered = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const [ACCOUNT, USER, PROJECT] = [numbered(1), numbered(2), numbered(3)];
const SIDES = { base: "b1", head: "h1" };

const FORMER = [
  { number: 1, status: "open", isNoted: false },
  { number: 2, status: "open", isNoted: true },
  { number: 3, status: "merged", isNoted: true },
  { number: 4, status: "closed", isNoted: true },
] as const;

const write = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`INSERT INTO accounts (id, name, tier, session_cap, created_at) VALUES (${ACCOUNT}, 'a', 'free', 3, now())`;
  yield* sql`INSERT INTO users (id, account_id, name, created_at) VALUES (${USER}, ${ACCOUNT}, 'u', now())`;
  yield* sql`
    INSERT INTO projects (id, account_id, name, repository, default_branch, created_by, created_at, updated_at)
    VALUES (${PROJECT}, ${ACCOUNT}, 'p', '{"kind": "hosted"}', 'main', ${USER}, now(), now())`;
  for (const { number, status, isNoted } of FORMER) {
    const isMerged = status === "merged";
    yield* sql`
      INSERT INTO change_requests (id, project_id, number, head_ref, base_ref, title, description, status, created_by,
        created_at, updated_at, base_commit, head_commit, merged_commit, merged_at, merged_by)
      VALUES (${numbered(10 + number)}, ${PROJECT}, ${number}, ${`work-${number}`}, 'main', 'Work', '', ${status}, ${USER},
        now(), now(), ${isNoted ? SIDES.base : null}, ${isNoted ? SIDES.head : null}, ${isMerged ? "m1" : null},
        ${isMerged ? sql`now()` : null}, ${isMerged ? USER : null})`;
  }
});

const check = Effect.gen(function* () {
  const { memory, unsettled, get } = yield* ChangeRequests;
  const states: unknown[] = [];
  for (const { number } of FORMER) {
    const loaded = yield* memory.load(numbered(10 + number));
    const { state, context } = loaded?.snapshot ?? {};
    states.push([state, context, loaded?.pending.map(({ command }) => command)]);
  }
  const nothing = { aim: null, by: null, message: null, sides: null, commit: null, refusal: null };
  expect(states).toEqual([
    ["open", nothing, []],
    ["merging", { ...nothing, aim: "look", sides: SIDES }, [{ type: "lookForMerge", sides: SIDES }]],
    ["merged", { ...nothing, by: USER, sides: SIDES, commit: "m1" }, []],
    ["closed", nothing, []],
  ]);
  expect((yield* unsettled).map(({ id }) => id)).toEqual([numbered(12)]);
  const shown = yield* Effect.forEach(FORMER, ({ number }) => get(PROJECT, number));
  expect(shown.map((request) => request?.status)).toEqual(FORMER.map(({ status }) => status));

  // What each may become, by the constraints of the table.
  yield* tellRequest(numbered(12), { type: "merged.in_git", sides: SIDES, commit: "m2" });
  yield* tellRequest(numbered(12), { type: "manifest.read" });
  expect(yield* get(PROJECT, 2)).toMatchObject({ status: "merged", merged: { commit: "m2", by: null } });
  yield* tellRequest(numbered(11), { type: "close.requested" });
  expect(yield* get(PROJECT, 1)).toMatchObject({ status: "closed" });
  yield* tellRequest(numbered(14), { type: "pull.merged", sides: SIDES, commit: "m3" });
  expect(yield* get(PROJECT, 4)).toMatchObject({ status: "closed", merged: null });
  yield* tellRequest(numbered(14), { type: "manifest.read" });
  expect(yield* get(PROJECT, 4)).toMatchObject({ status: "merged", merged: { commit: "m3" } });
});

it.live("go on after the upgrade, and an interrupted merge is looked for", () =>
  Effect.gen(function* () {
    const known = yield* loadMigrations;
    yield* runMigrations(known.filter(({ name }) => name < "0028"));
    yield* write;
    yield* migrate;
    yield* Effect.provide(check, postgresStore);
  }).pipe(Effect.provide(testDatabase("empty"), { local: true })),
);
