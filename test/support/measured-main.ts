/** The service as main.ts runs it, for measurements: a message from the process that started it is answered with its memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { keepCompiled } from "../../src/compile-cache.ts";

keepCompiled();
const { run, service } = await import("../../src/serve.ts");

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on("message", () => {
  collect();
  process.send?.(process.memoryUsage());
});
// The service ends when it has come to its end, whoever may still have something to ask it.
process.channel?.unref();

run(service);
