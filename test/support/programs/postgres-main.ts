/**
 * One Postgres for a run of tests, until the end of this program's input. DATABASE_URL names a server to use. Without it the
 * embedded one starts in a temporary directory. Prints its address and the name of a migrated template on it, as one line of JSON.
 */
import { once } from "node:events";
import * as Effect from "effect/Effect";
import { claimDataDirectory } from "../../../src/store/data-directory.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";
import { guardedDirectory } from "../machine/guard.ts";
import { administer, makeTemplate } from "../postgres/databases.ts";
import type { RunPostgres } from "../postgres/offer.ts";

const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => guardedDirectory("platform-test-")),
  ({ remove }) => Effect.sync(remove),
).pipe(Effect.map(({ directory }) => directory));

/** The address of the server, until the scope closes. */
const server = Effect.gen(function* () {
  const given = process.env["DATABASE_URL"];
  if (given !== undefined) return given;
  const { url } = yield* startEmbedded(yield* claimDataDirectory(yield* temporaryDirectory));
  // The data does not outlive the run. Without fsync, databases are made and dropped three times as fast.
  yield* administer(
    url,
    "ALTER SYSTEM SET fsync = off",
    "ALTER SYSTEM SET full_page_writes = off",
    // No database lives long enough to need it, and there are hundreds.
    "ALTER SYSTEM SET autovacuum = off",
    "SELECT pg_reload_conf()",
  );
  return url;
});

const ended = once(process.stdin.resume(), "end");

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const url = yield* server;
      const ready = { url, template: yield* makeTemplate(url) } satisfies RunPostgres;
      process.stdout.write(`${JSON.stringify(ready)}\n`);
      yield* Effect.promise(() => ended);
    }),
  ),
);
