/**
 * Builds everything that the service needs and that is made of the clone's sources: `npm run build`. A start in a clone builds
 * what is missing or older than its sources; a start without the development packages needs this before.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { PAGE_DIRECTORY, readPage } from "../src/http/pages/page-files.ts";
import { sandboxPrograms, unpackingProgram } from "../src/assembly/sandbox-programs.ts";

const directory = await mkdtemp(path.join(tmpdir(), "platform-build-"));
try {
  await Promise.all([
    readPage(PAGE_DIRECTORY),
    Effect.runPromise(sandboxPrograms(directory)),
    unpackingProgram(),
  ]);
} finally {
  await rm(directory, { recursive: true });
}
