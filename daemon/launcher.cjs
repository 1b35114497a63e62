/**
 * Starts a bundled daemon with what V8 compiled of it before: `node launcher.cjs /usr/local/bin/platform-agent`. Its
 * code cache lies beside this file. V8 itself refuses one that was made from another source or by another version, and
 * compiles then as it always does. Plain JavaScript and as little as possible: nothing of this file is cached.
 */
"use strict";
const { readFileSync } = require("node:fs");
const { basename, join } = require("node:path");
const { Script } = require("node:vm");

/**
 * The program as a function of what Node gives a CommonJS file.
 * @param {string} path of the bundle @param {Buffer} [cachedData] of an earlier `createCachedData`
 */
const compile = (path, cachedData) =>
  new Script(`(function (exports, require, module) {${readFileSync(path, "utf8")}\n})`, {
    // The same wherever it lies, in a stack trace too.
    filename: basename(path),
    ...(cachedData && { cachedData }),
  });

/** @param {import("node:vm").Script} script @returns {unknown} what the bundle exports */
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
