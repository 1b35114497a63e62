import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Script } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleDaemon, type Bundle } from "../../daemon/bundle/bundle.ts";
import { writeCodeCache } from "../../daemon/bundle/code-cache.ts";

const LAUNCHER = resolve(import.meta.dirname, "../../daemon/programs/launcher.cjs");
const { compile } = createRequire(import.meta.url)(LAUNCHER) as {
  compile: (path: string, cachedData?: Buffer) => Script;
};

let directory: string;
let bundle: Bundle;
/** As a provider puts them: the launcher, and the cache beside it. */
let launcher: string;
let cache: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "bundle-"));
  bundle = await bundleDaemon(join(directory, "platform-agent"));
  launcher = join(directory, "launcher.cjs");
  copyFileSync(LAUNCHER, launcher);
  cache = join(directory, "platform-agent.cache");
  await writeCodeCache(process.execPath, bundle.path, cache);
});
afterAll(() => rmSync(directory, { recursive: true }));

const run = (...args: readonly string[]): Promise<{ code: unknown; said: unknown }> =>
  new Promise((done) =>
    execFile(process.execPath, args, { cwd: directory, env: {} }, (error, out) =>
      done({ code: error?.code, said: JSON.parse(out) }),
    ),
  );

/** The output of a daemon that ends because no sandbox is around it. */
const NO_SANDBOX = {
  code: 1,
  said: expect.objectContaining({
    event: "daemon failed",
    message: "the environment or /run/platform/launch.json cannot be read: ENOENT",
  }) as unknown,
};

test("is one file with its hash, and contains no path of this machine", () => {
  const text = readFileSync(bundle.path, "utf8");
  expect(bundle.hash).toBe(createHash("sha256").update(text).digest("hex"));
  expect(text).not.toContain(resolve(import.meta.dirname, "../.."));
  // The daemon itself knows a directory of this name in workspaces, and no file in one.
  expect(text).not.toMatch(/node_modules\/[\w@.]/);
});

test("is the same for the same sources", async () => {
  expect((await bundleDaemon(join(directory, "again"))).hash).toBe(bundle.hash);
});

test("runs by itself, without an extension and outside of any package", async () => {
  expect(await run(bundle.path)).toEqual(NO_SANDBOX);
});

test("runs from its code cache, which V8 accepts", async () => {
  expect(compile(bundle.path, readFileSync(cache)).cachedDataRejected).toBe(false);
  expect(await run(launcher, bundle.path)).toEqual(NO_SANDBOX);
});

test("also runs if the code cache belongs to another program", async () => {
  const other = join(directory, "other", "platform-agent");
  await bundleDaemon(other);
  appendFileSync(other, "\n// changed");
  expect(compile(other, readFileSync(cache)).cachedDataRejected).toBe(true);
  expect(await run(launcher, other)).toEqual(NO_SANDBOX);
});
