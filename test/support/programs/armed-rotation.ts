/**
 * `platform admin master-key rotate` that kills itself at a fault point: `node armed-rotation.ts <point> [new key
 * file]`, with the environment of the command.
 */
import { writeSync } from "node:fs";
import * as Effect from "effect/Effect";
import { rotateMasterKey } from "../../../src/installation/operator/master-key.ts";
import { Faults } from "../../../src/store/ports/faults.ts";

const [point, keyFile = null] = process.argv.slice(2);
const rotation = Effect.provideService(rotateMasterKey(process.env, keyFile), Faults, (passed) => {
  if (passed !== point) return;
  writeSync(process.stderr.fd, `killed at ${passed}\n`);
  process.kill(process.pid, "SIGKILL");
});
await Effect.runPromise(rotation);
