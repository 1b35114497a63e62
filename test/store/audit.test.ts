/** How a large audit record is read: each filter by its index, and no page reads more rows than it has. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import type { AuditRequest } from "../../src/store/ports/audit.ts";
import { pageRows } from "../../src/store/postgres/audit.ts";
import { storeOfFile } from "../support/postgres/postgres.ts";
import { explain } from "../support/postgres/explain.ts";
import { makeWorld, NOON } from "../support/world/world.ts";

const store = storeOfFile();

const ROWS = 100_000;
const LIMIT = 50;
/** Rows of one statement, which has five seconds also on a busy machine. */
const AT_ONCE = 5000;
/** Rows are a second apart. Every hundredth is of the person, every thousandth of the action, every tenth of the project. */
const fill = Effect.fnUntraced(function* (accountId: string, person: string, projectId: string) {
  const sql = yield* SqlClient.SqlClient;
  for (let from = 1; from <= ROWS; from += AT_ONCE)
    yield* sql`
    INSERT INTO audit_events (id, at, account_id, project_id, actor_kind, actor_id, action, outcome, changes)
    SELECT gen_random_uuid(), ${new Date(NOON)}::timestamptz + n * interval '1 second', ${accountId}::uuid,
      CASE WHEN n % 10 = 0 THEN ${projectId}::uuid END, 'person',
      CASE WHEN n % 100 = 1 THEN ${person}::uuid ELSE gen_random_uuid() END,
      CASE WHEN n % 1000 = 2 THEN 'secret.set' ELSE 'session.created' END, 'done', '{}'
    FROM generate_series(${from}::integer, ${from + AT_ONCE - 1}::integer) AS n`;
  yield* sql`ANALYZE audit_events`;
});

describe("an audit record of 100,000 rows", () => {
  it.live("is read by index, page by page, with each filter", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const { accountId, projectId } = yield* makeWorld(5);
      const person = randomUUID();
      yield* fill(accountId, person, projectId);
      const whole: AuditRequest = {
        accountId,
        projectId: null,
        actorId: null,
        action: null,
        since: null,
        until: null,
        limit: LIMIT,
        cursor: null,
      };
      const middle = { at: NOON + (ROWS / 2) * 1000, id: randomUUID() };
      const cases: readonly Partial<AuditRequest>[] = [
        {},
        { since: NOON + 1000, until: middle.at },
        { projectId },
        { actorId: person },
        { action: "secret.set" },
      ];
      for (const wish of cases)
        for (const position of [null, middle]) {
          const found = yield* explain(pageRows(sql, { ...whole, ...wish }, position));
          const seen = JSON.stringify([wish, found]);
          expect(found.steps, seen).not.toContain("Seq Scan");
          expect(found.most, seen).toBeLessThanOrEqual(LIMIT + 1);
        }
    }).pipe(Effect.provide(store)),
  );
});
