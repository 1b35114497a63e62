/** Gives tests of the page's modules the package's file for browsers where the service answers with it. */
import { registerHooks } from "node:module";

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "./markdown-it.js" ? import.meta.resolve("markdown-it/browser") : specifier, context),
});
