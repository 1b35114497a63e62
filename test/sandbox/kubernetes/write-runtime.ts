/**
 * Writes what the runtime image of own-cluster.real.test.ts is built from:
 *
 *   node test/sandbox/kubernetes/write-runtime.ts DIRECTORY
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeStandInRuntime } from "./runtime.ts";

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("name a directory");
process.umask(0o022);
await writeStandInRuntime(directory);
await writeFile(join(directory, "Dockerfile"), "FROM scratch\nCOPY opt /opt\n");
