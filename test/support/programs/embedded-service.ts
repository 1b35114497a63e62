/**
 * A process that owns a data directory and its embedded Postgres, like the service, for tests that kill it. `node
 * embedded-service.ts <data directory>` prints one JSON line `{url}` or `{refused: {tag, pid?}}` and runs until
 * SIGTERM.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime";
import * as Effect from "effect/Effect";
import { claimDataDirectory } from "../../../src/store/data-directory.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";

const say = (line: unknown) =>
  Effect.sync(() => {
    process.stdout.write(`${JSON.stringify(line)}\n`);
  });

const service = Effect.gen(function* () {
  const directory = yield* claimDataDirectory(process.argv[2] ?? "");
  const { url } = yield* startEmbedded(directory);
  yield* say({ url });
  return yield* Effect.never;
}).pipe(
  Effect.catchTag("DataDirectoryOwned", ({ _tag, pid }) => say({ refused: { tag: _tag, pid } })),
  Effect.scoped,
);

NodeRuntime.runMain(service);
