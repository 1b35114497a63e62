/** Settings of the package cache. */
import { define } from "./setting.ts";

export const PACKAGE_SETTINGS = define({
  PLATFORM_PACKAGE_CACHE_MB: {
    group: "Package cache",
    kind: "integer",
    fallback: 10_240,
    min: 0,
    max: 100_000_000,
    about:
      "How much disk space [package files](packages.md) may use on each node, in MiB. Above it, the files that were unused for the longest time are " +
      "removed. With `0`, or if no registry is named, there is no cache, and sandboxes ask the registries themselves.",
  },
  PLATFORM_PACKAGE_CACHE_NPM: {
    group: "Package cache",
    kind: "url",
    fallback: null,
    about:
      "The npm registry whose package files are kept. Its host may have a private or loopback address, or use plain http. Sandboxes use it if they may reach " +
      "its host and no `.npmrc` names another one. Without it, npm asks its own default.",
  },
  PLATFORM_PACKAGE_CACHE_PYPI: {
    group: "Package cache",
    kind: "url",
    fallback: null,
    about:
      "The Python package index, on any host like the npm registry, that pip uses in sandboxes, with the path to its projects, if they may reach its host and pip has no other one. Its package files are kept. Without it, pip asks its own default.",
  },
});
