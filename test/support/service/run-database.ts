/**
 * A database for services in processes of their own. A service that has no `DATABASE_URL` makes a Postgres of its own and migrates
 * it, which costs a test file two seconds of CPU time. Only tests of that Postgres and of the data directory need it.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, inject } from "vitest";
import { databaseAt, scopedDatabase } from "../postgres/databases.ts";
import { askForPostgres } from "../postgres/offer.ts";

/** Registers a migrated database of the run's Postgres for the calling suite. Call it before the suite's own hooks. @returns its settings */
export const useRunDatabase = (): (() => { readonly DATABASE_URL: string }) => {
  const scope = Effect.runSync(Scope.make());
  let DATABASE_URL = "";
  beforeAll(async () => {
    const { url, template } = await askForPostgres(inject("postgres"));
    const name = await Effect.runPromise(Scope.provide(scopedDatabase(url, "service", template), scope));
    DATABASE_URL = databaseAt(url, name);
  });
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
  return () => ({ DATABASE_URL });
};
