/** The service's start on a machine whose git it cannot use. */
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";

const root = mkdtempSync(join(tmpdir(), "start-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

it("is refused with git older than 2.38, names the version, and leaves nothing behind [G14]", async () => {
  writeFileSync(join(root, "git"), "#!/bin/sh\necho git version 2.37.9\n");
  chmodSync(join(root, "git"), 0o755);
  const data = join(root, "data");
  const environment = { PATH: `${root}:${process.env["PATH"]}`, PLATFORM_DATA_DIR: data, PLATFORM_PORT: "0" };
  const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  const ended = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, [main], { env: environment, cwd: root }, (error, _, stderr) =>
      resolve({ code: error?.code, stderr }),
    );
  });
  expect(ended).toEqual({
    code: 1,
    stderr: 'git 2.38 or newer is required. This machine has "git version 2.37.9".\n',
  });
  expect(existsSync(data)).toBe(false);
});
