/** Loaded into the service before its program: simulated sandboxes get daemons on sockets (linked-sandboxes.ts). */
import { registerHooks } from "node:module";

const ADAPTERS = new URL("../../../../src/assembly/adapters.ts", import.meta.url).href;
const REPLACED = new Set(["../sandbox/simulated.ts", "../sandbox/daemon-simulated.ts"]);

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    context.parentURL === ADAPTERS && REPLACED.has(specifier)
      ? nextResolve("./linked-sandboxes.ts", { ...context, parentURL: import.meta.url })
      : nextResolve(specifier, context),
});
