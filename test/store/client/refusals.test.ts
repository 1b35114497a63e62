/** What the database refuses: a defect where it would refuse it every time, else an error that is waited out. */
import { it } from "@effect/vitest";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { SqlError, UnknownError } from "effect/sql/SqlError";
import { describe, expect } from "vitest";
import { namedSqlError } from "../../../src/store/postgres/connection/errors.ts";
import { toStored } from "../../../src/store/postgres/connection/statement.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { checkWith } from "../../conformance/store/fixture.ts";
import { admitSession, tellSession } from "../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";

const kindOf = <A, E>(exit: Exit.Exit<A, E>): string => {
  if (Exit.isSuccess(exit)) return "success";
  return Cause.hasDies(exit.cause) ? "defect" : String(Reflect.get(Object(Cause.squash(exit.cause)), "_tag"));
};

describe("a statement's error", () => {
  it.effect.each([
    ["22P05", "defect", "a NUL in jsonb"],
    ["22P02", "defect", "a lone surrogate in jsonb"],
    ["22021", "defect", "a NUL in text"],
    ["23505", "defect", "a unique constraint"],
    ["23503", "defect", "a foreign key"],
    ["23514", "defect", "a check"],
    ["42601", "defect", "syntax"],
    ["42P01", "defect", "a missing table"],
    ["42501", "StoreError", "a missing privilege"],
    ["08006", "StoreError", "a lost connection"],
    ["28P01", "StoreError", "a wrong password"],
    ["25006", "StoreError", "a standby that was not promoted yet"],
    ["40001", "StoreError", "serialization"],
    ["40P01", "StoreError", "a deadlock"],
    ["53100", "StoreError", "a full disk"],
    ["53300", "StoreError", "too many connections"],
    ["55P03", "StoreError", "a lock that was waited for too long"],
    ["55000", "StoreError", "a database that takes no connections"],
    ["57014", "StoreError", "a statement that took too long"],
    ["57P01", "StoreError", "a shutdown"],
    ["XX000", "StoreError", "an error of the server's own"],
    ["ECONNREFUSED", "StoreError", "a missing server"],
  ] as const)("with code %s is a %s: %s", ([code, kind]) =>
    Effect.gen(function* () {
      const cause = Object.assign(new Error("refused"), { code });
      const error = namedSqlError(new SqlError({ reason: new UnknownError({ cause }) }));
      expect(kindOf(yield* Effect.exit(Effect.fail(error).pipe(toStored("an operation"))))).toBe(kind);
    }),
  );
});

describe("Postgres", () => {
  const check = checkWith(storeOfFile());

  check(
    "refuses a step with text that no row can hold, and writes no part of it",
    Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(5));
      const { get } = yield* Sessions;
      for (const message of ["a NUL: \0", "half of a pair: \ud83d"]) {
        const failed = { type: "branch.failed", failure: { code: "branch_failed", message } } as const;
        expect(kindOf(yield* Effect.exit(tellSession(id, failed)))).toBe("defect");
      }
      expect(yield* get(id)).toMatchObject({ status: "provisioning", failure: null });
    }),
  );

  check(
    "refuses a second token under a hash",
    Effect.gen(function* () {
      const { accountId, userId, tokenHash } = yield* makeWorld(5);
      const { createToken } = yield* Identity;
      const token = {
        id: "018f4d9c-0000-7000-8000-000000000001",
        accountId,
        userId,
        projectId: null,
        name: "again",
        hash: tokenHash,
        origin: "user",
        expiresAt: null,
        now: NOON,
      } as const;
      expect(kindOf(yield* Effect.exit(createToken(token)))).toBe("defect");
    }),
  );
});
