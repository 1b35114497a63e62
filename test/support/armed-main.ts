/**
 * The service as main.ts runs it, for tests that end or stop it at a fault point (src/store/ports/faults.ts). A message from the
 * process that started it names the point and the signal; at the next pass of that point this process sends itself the
 * signal, and does nothing more before it is there.
 */
import { writeSync } from "node:fs";
import { keepCompiled } from "../../src/compile-cache.ts";
import type { FaultPoint } from "../../src/store/ports/faults.ts";

keepCompiled();
const Effect = await import("effect/Effect");
const { run, service } = await import("../../src/serve.ts");
const { Faults } = await import("../../src/store/ports/faults.ts");

export interface Arming {
  readonly point: FaultPoint;
  readonly signal: "SIGKILL" | "SIGSTOP";
}

let armed: Arming | null = null;

process.on("message", (message) => {
  armed = message as Arming;
  process.send?.("armed");
});
// The service ends when it has come to its end, whoever may still have something to say to it.
process.channel?.unref();

run(
  Effect.provideService(service, Faults, (point) => {
    if (point !== armed?.point) return;
    const { signal } = armed;
    armed = null;
    // Synchronous, as the signal is: nothing else of this process runs between them.
    writeSync(process.stderr.fd, `${signal} at ${point}\n`);
    process.kill(process.pid, signal);
  }),
);
