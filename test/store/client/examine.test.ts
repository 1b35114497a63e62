import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import {
  examineDatabase,
  faultsIn,
  migrateIfFit,
  requireFit,
  type Facts,
} from "../../../src/store/postgres/examine.ts";
import { loadMigrations, runMigrations } from "../../../src/store/postgres/migrate.ts";
import { startPooler } from "../../support/machine/pgbouncer.ts";
import { administer } from "../../support/postgres/databases.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { pgbouncerProgram } from "../../support/requirements.ts";

const FIT: Facts = {
  major: 15,
  encoding: "UTF8",
  isReadOnly: false,
  mayCreate: true,
  isPooled: false,
  pending: 0,
  refusal: null,
};

const on = <A, E>(url: string, effect: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(effect, Client.layer({ url, maxConnections: 2 }), { local: true });

describe("a database", () => {
  it.each([
    [{}, null],
    [{ mayCreate: false }, null],
    [{ pending: 1 }, null],
    [{ major: 14 }, "its Postgres is too old"],
    [{ isReadOnly: true }, "it is read-only"],
    [{ encoding: "LATIN1" }, "its encoding is not UTF8"],
    [{ pending: 1, mayCreate: false }, "its user may not create tables, and migrations are pending"],
    [{ isPooled: true }, "a pooler gives each transaction another session (pool_mode = transaction)"],
    [{ refusal: "A newer version has used it." }, "its schema does not fit"],
  ] as const)("with %o is judged", (facts, text) => {
    expect(faultsIn({ ...FIT, ...facts }).map((fault) => fault.text)).toEqual(text === null ? [] : [text]);
  });

  it.live("with a schema of its own and a session for each connection is fit", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("migrated");
      expect(yield* on(url, examineDatabase)).toMatchObject({ pending: 0, refusal: null, faults: [] });
      yield* on(url, requireFit);
    }).pipe(Effect.scoped),
  );

  it.live("that a node of an earlier version still uses is not migrated, until that node is silent", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("empty");
      const known = yield* loadMigrations;
      yield* on(url, runMigrations(known.slice(0, -1)));
      const client = yield* Layer.build(Client.layer({ url, maxConnections: 2 }));
      const sql = Context.get(client, SqlClient.SqlClient);
      yield* sql`INSERT INTO nodes (id, beats, last_seen_at) VALUES ('former', 1, now()), ('own', 1, now())`;
      const beating = yield* Effect.forkScoped(
        Effect.forever(Effect.andThen(sql`UPDATE nodes SET beats = beats + 1`, Effect.sleep("100 millis"))),
      );
      expect(yield* Effect.flip(on(url, migrateIfFit("own")))).toMatchObject({
        text: expect.stringMatching(/another version of the service still runs on it \(node former\)/),
      });
      expect(yield* on(url, examineDatabase)).toMatchObject({ pending: 1 });
      yield* Fiber.interrupt(beating);
      expect(yield* on(url, migrateIfFit("own"))).toEqual([known.at(-1)?.name]);
    }).pipe(Effect.scoped),
  );

  it.live("that refuses writes, or its user's tables, is refused", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("empty");
      const database = new URL(url).pathname.slice(1);
      const alter = (...statements: readonly string[]) => administer(url, ...statements);
      yield* alter(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
      expect(yield* Effect.flip(on(url, requireFit))).toMatchObject({ text: "it is read-only" });
      yield* alter(
        "SET default_transaction_read_only = off",
        `ALTER DATABASE ${database} RESET default_transaction_read_only`,
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        `CREATE ROLE ${database}_reader LOGIN PASSWORD 'reader'`,
      );
      const reader = Object.assign(new URL(url), { username: `${database}_reader`, password: "reader" });
      const { faults } = yield* on(reader.href, examineDatabase);
      yield* alter(`DROP ROLE ${database}_reader`);
      expect(faults.map(({ text }) => text)).toEqual([
        "its user may not create tables, and migrations are pending",
      ]);
    }).pipe(Effect.scoped),
  );

  it.live.runIf(pgbouncerProgram !== undefined)(
    "behind a pooler is refused if transactions share sessions, and fit if they do not",
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase("migrated");
        const pooler = (mode: "transaction" | "session") =>
          Effect.acquireRelease(
            Effect.promise(() => startPooler(url, mode)),
            ({ stop }) => Effect.promise(stop),
          );
        const shared = yield* pooler("transaction");
        expect(yield* Effect.flip(on(shared.url, requireFit))).toMatchObject({
          text: expect.stringContaining("pool_mode = transaction") as string,
        });
        const own = yield* pooler("session");
        yield* on(own.url, requireFit);
      }).pipe(Effect.scoped),
  );
});
