/**
 * Starts a bundled daemon with its code cache: `node launcher.cjs /usr/local/bin/platform-agent`. The cache is beside this
 * file. If it was made from another source or by another version, V8 rejects it and compiles as usual. This file is plain
 * JavaScript and short, because it is not cached itself.
 */
"use strict";
const { readFileSync } = require("node:fs");
const { basename, join } = require("node:path");
const { Script } = require("node:vm");

/**
 * The program as a function with the parameters of a CommonJS module.
 * @param {string} path of the bundle @param {Buffer} [cachedData] of an earlier `createCachedData`
 */
const compile = (path, cachedData) =>
  new Script(`(function (exports, require, module) {${readFileSync(path, "utf8")}\n})`, {
    // The name is independent of the directory, in stack traces too.
    filename: basename(path),
    ...(cachedData && { cachedData }),
  });

/** @param {import("node:vm").Script} script @returns {unknown} the bundle's exports */
const load = (script) => {
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module);
  return module.exports;
};

exports.compile = compile;
exports.load = load;

if (require.main === module) {
  const program = process.argv[2] ?? "";
  load(compile(program, readFileSync(join(__dirname, `${basename(program)}.cache`)))).run();
}
