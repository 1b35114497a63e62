/**
 * Loads a bundled daemon, lets it warm up, and keeps what V8 compiled on the way:
 * `node write-code-cache.cjs <bundle> <cache>`, by the Node that is to use the cache.
 */
"use strict";
const { writeFileSync } = require("node:fs");
const { compile, load } = require("./launcher.cjs");

const [, , bundle = "", cache = ""] = process.argv;
const script = compile(bundle);
load(script)
  .warmUp()
  .then(() => writeFileSync(cache, script.createCachedData()));
