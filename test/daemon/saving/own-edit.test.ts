/** A runtime's additions to the project's files are taken back, and no other change (daemon/git/own-edit.ts). */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { opencodeSettings } from "../../../daemon/adapters/opencode/opencode.ts";
import { takeBackOwnEdit } from "../../../daemon/git/own-edit.ts";
import type { Settings } from "../../../daemon/settings.ts";
import { daemonPerTest } from "../support/per-test.ts";
import { write } from "../support/workspace-files.ts";

const { ready } = daemonPerTest();

const FILE = '{\n  "model": "a/b"\n}\n';
/** As opencode writes it. */
const edited = (text: string): string =>
  text.replace(/^\s*\{/, '{\n  "$schema": "https://opencode.ai/config.json",');

test("restores files that differ by the addition alone, and leaves every other change", async () => {
  const names = ["opencode.json", ".opencode/opencode.jsonc", "conf/opencode.json", "staged/opencode.json"];
  const daemon = await ready({
    files: { ...Object.fromEntries(names.map((name) => [name, FILE])), "opencode.jsonc": '{"one":"line"}' },
  });
  const { workspace } = daemon.layout;
  const takeBack = (directory: string) =>
    Effect.runPromise(
      takeBackOwnEdit(
        { layout: daemon.layout, launch: { prefix: [], commonEnv: process.env } } as unknown as Settings,
        opencodeSettings.ownEdit,
        () => join(workspace, directory),
      ),
    );
  for (const name of names) write(daemon, name, edited(FILE));
  write(daemon, "opencode.jsonc", edited('{"one":"line"}'));
  await takeBack("conf");
  expect(await daemon.git("status", "--porcelain")).toBe(" M staged/opencode.json\n");

  const changed = edited(FILE).replace("a/b", "a/c");
  write(daemon, "opencode.json", changed);
  await daemon.git("add", "staged/opencode.json");
  writeFileSync(join(workspace, "conf/opencode.jsonc"), edited("{}"));
  await takeBack("conf");
  await takeBack("staged");
  expect(readFileSync(join(workspace, "opencode.json"), "utf8")).toBe(changed);
  expect(await daemon.git("status", "--porcelain")).toBe(
    " M opencode.json\nM  staged/opencode.json\n?? conf/opencode.jsonc\n",
  );
});
