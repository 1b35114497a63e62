/**
 * The service as main.ts runs it, for tests that kill it at a fault point (src/store/faults.ts). A message from the process
 * that started it names the point; the next pass of that point is the last thing this process does.
 */
import { writeSync } from "node:fs";
import * as Effect from "effect/Effect";
import { run, service } from "../../src/serve.ts";
import { FAULT_POINTS, Faults, type FaultPoint } from "../../src/store/faults.ts";

let armed: FaultPoint | null = null;

process.on("message", (message) => {
  armed = FAULT_POINTS.find((point) => point === message) ?? null;
  process.send?.("armed");
});
// The service ends when it has come to its end, whoever may still have something to say to it.
process.channel?.unref();

run(
  Effect.provideService(service, Faults, (point) => {
    if (point !== armed) return;
    // Synchronous: nothing else of this process runs between the pass and its end.
    writeSync(process.stderr.fd, `died at ${point}\n`);
    process.kill(process.pid, "SIGKILL");
  }),
);
