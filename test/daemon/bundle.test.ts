import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleDaemon, type Bundle } from "../../daemon/bundle.ts";

let directory: string;
let bundle: Bundle;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "bundle-"));
  bundle = await bundleDaemon(join(directory, "platform-agent"));
});
afterAll(() => rmSync(directory, { recursive: true }));

test("is one file with its hash, and names no path of this machine", () => {
  const text = readFileSync(bundle.path, "utf8");
  expect(bundle.hash).toBe(createHash("sha256").update(text).digest("hex"));
  expect(text).not.toContain(resolve(import.meta.dirname, "../.."));
  expect(text).not.toContain("node_modules");
});

test("is the same for the same sources", async () => {
  expect((await bundleDaemon(join(directory, "again"))).hash).toBe(bundle.hash);
});

test("runs by itself, without an extension and outside of any package", async () => {
  const { code, stdout } = await new Promise<{ code: unknown; stdout: string }>((done) =>
    execFile(process.execPath, [bundle.path], { cwd: directory, env: {} }, (error, out) =>
      done({ code: error?.code, stdout: out }),
    ),
  );
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    event: "daemon failed",
    message: "the environment or /run/platform/launch.json cannot be read: ENOENT",
  });
});
