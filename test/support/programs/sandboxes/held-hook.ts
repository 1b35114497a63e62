/** Loaded into the service before its program: no simulated sandbox is ever made (held-sandboxes.ts). */
import { registerHooks } from "node:module";

const ADAPTERS = new URL("../../../../src/assembly/adapters.ts", import.meta.url).href;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    context.parentURL === ADAPTERS && specifier === "../sandbox/simulated.ts"
      ? nextResolve("./held-sandboxes.ts", { ...context, parentURL: import.meta.url })
      : nextResolve(specifier, context),
});
