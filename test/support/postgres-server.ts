/**
 * Vitest's global set-up: one Postgres for the whole run. DATABASE_URL names a server to use; else the embedded one is
 * started in a temporary directory. Test files get databases of their own from support/postgres.ts.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import type { TestProject } from "vitest/node";
import { claimDataDirectory } from "../../src/store/data-directory.ts";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { guardedDirectory } from "./guard.ts";
import { administer, makeTemplate } from "./postgres-databases.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A migrated template on the run's server. */
    postgres: { readonly url: string; readonly template: string };
  }
}

const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => guardedDirectory("platform-test-")),
  ({ remove }) => Effect.sync(remove),
).pipe(Effect.map(({ directory }) => directory));

/** The address of the run's server, until the scope closes. */
export const server = Effect.gen(function* () {
  const given = process.env["DATABASE_URL"];
  if (given !== undefined) return given;
  const { url } = yield* startEmbedded(yield* claimDataDirectory(yield* temporaryDirectory));
  // Its data does not outlive the run; databases are created and dropped three times as fast.
  yield* administer(url, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()");
  return url;
});

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const scope = Effect.runSync(Scope.make());
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void));
  try {
    const postgres = await Effect.runPromise(
      Effect.gen(function* () {
        const url = yield* server;
        return { url, template: yield* makeTemplate(url) };
      }).pipe(Scope.provide(scope)),
    );
    project.provide("postgres", postgres);
    return close;
  } catch (error) {
    await close();
    throw error;
  }
};
