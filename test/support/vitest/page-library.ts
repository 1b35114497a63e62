/** Gives tests of the page's modules the package's file for browsers where the service answers with it. */
import { flushCompileCache, registerHooks } from "node:module";
import { afterAll } from "vitest";

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "./markdown-it.js" ? import.meta.resolve("markdown-it/browser") : specifier, context),
});

// Workers are killed at the end of a run. Without this, those that start later compile everything again.
afterAll(() => flushCompileCache());
