/** Gives tests of the page's modules the package's file for browsers where the service answers with it. */
import { flushCompileCache, registerHooks } from "node:module";
import { afterAll } from "vitest";

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "./markdown-it.js" ? import.meta.resolve("markdown-it/browser") : specifier, context),
});

// Workers are killed at a run's end, and would keep nothing of what they have compiled for those that start later.
afterAll(() => flushCompileCache());
