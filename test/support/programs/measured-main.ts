/**
 * The service as main.ts runs it, for measurements: it answers each message from its parent process with its memory
 * usage.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { keepCompiled } from "../../../src/ground/compile-cache.ts";

keepCompiled();
const { run, service } = await import("../../../src/serve.ts");

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on("message", () => {
  collect();
  process.send?.(process.memoryUsage());
});
// The service exits when it has ended, even if its parent may still send messages.
process.channel?.unref();

run(service);
