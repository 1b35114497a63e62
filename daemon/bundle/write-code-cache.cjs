/**
 * Loads a bundled daemon, lets it warm up, and writes V8's compiled code:
 * `node write-code-cache.cjs <bundle> <cache>`. Run it with the Node that will use the cache.
 */
"use strict";
const { writeFileSync } = require("node:fs");
const { compile, load } = require("../programs/launcher.cjs");

const [, , bundle = "", cache = ""] = process.argv;
const script = compile(bundle);
load(script)
  .warmUp()
  .then(() => writeFileSync(cache, script.createCachedData()));
