/**
 * The service as main.ts runs it, for tests that end or stop it at a fault point (src/store/ports/faults.ts). A message
 * from the parent process names the point and the signal. At the next pass of that point, this process sends itself the
 * signal, and does nothing more before the signal arrives.
 */
import { writeSync } from "node:fs";
import { keepCompiled } from "../../../src/ground/compile-cache.ts";
import type { FaultPoint } from "../../../src/store/ports/faults.ts";

keepCompiled();
const Effect = await import("effect/Effect");
const { run, service } = await import("../../../src/serve.ts");
const { Faults } = await import("../../../src/store/ports/faults.ts");

export interface Arming {
  readonly point: FaultPoint;
  readonly signal: "SIGKILL" | "SIGSTOP";
}

let armed: Arming | null = null;

process.on("message", (message) => {
  armed = message as Arming;
  process.send?.("armed");
});
// The service exits when it has ended, even if its parent may still send messages.
process.channel?.unref();

run(
  Effect.provideService(service, Faults, (point) => {
    if (point !== armed?.point) return;
    const { signal } = armed;
    armed = null;
    // Synchronous, like the signal: no other code of this process runs in between.
    writeSync(process.stderr.fd, `${signal} at ${point}\n`);
    process.kill(process.pid, signal);
  }),
);
