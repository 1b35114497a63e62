import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfigDir } from "../../../daemon/boot/config-dir.ts";
import { configuresRuntime } from "../../../daemon/agent/models.ts";

let workspace: string;
beforeAll(() => {
  workspace = mkdtempSync(join(tmpdir(), "config-dir-"));
  mkdirSync(join(workspace, "inside"));
  symlinkSync("/etc", join(workspace, "out"));
  symlinkSync("inside", join(workspace, "in"));
});
afterAll(() => rmSync(workspace, { recursive: true }));

const setting = (value: string) => readConfigDir(`[runtime]\nconfig_dir = ${value}\n`, workspace);

describe("the agent config directory", () => {
  test("is .platform/runtime if the manifest does not set it or is missing", async () => {
    const standard = { path: join(workspace, ".platform/runtime"), problem: null };
    expect(await readConfigDir("", workspace)).toEqual(standard);
    expect(await readConfigDir("[runtime]\n", workspace)).toEqual(standard);
  });

  test("is the manifest's directory if it lies in the checkout, also through a link that stays inside", async () => {
    expect(await setting('"agents/conf"')).toEqual({ path: join(workspace, "agents/conf"), problem: null });
    expect(await setting('"in/new"')).toEqual({ path: join(workspace, "in/new"), problem: null });
    expect(await setting('"..config"')).toEqual({ path: join(workspace, "..config"), problem: null });
  });

  test.each(['"../../.."', '"a/../../b"', '"/etc"', '"out"', '"out/ssl"', '""', "7", '"a\\u0000b"'])(
    "is never %s: the default is used and the problem is reported [M15]",
    async (value) => {
      const { path, problem } = await setting(value);
      expect(path).toBe(join(workspace, ".platform/runtime"));
      expect(problem).toContain("config_dir");
    },
  );

  test("is the default if the manifest is not TOML", async () => {
    const { path, problem } = await readConfigDir("[runtime", workspace);
    expect(path).toBe(join(workspace, ".platform/runtime"));
    expect(problem).toContain("platform.toml is not valid TOML");
  });
});

describe("a commit", () => {
  test.each(["opencode.json", "opencode.jsonc", ".opencode", "conf"])(
    "may configure the runtime if it has %s",
    (name) => {
      const directory = mkdtempSync(join(tmpdir(), "configures-"));
      const configDir = { path: join(directory, "conf"), problem: null };
      const configures = () => configuresRuntime({ layout: { workspace: directory } }, { configDir });
      writeFileSync(join(directory, "README.md"), "");
      expect(configures()).toBe(false);
      // A link may lead anywhere, and be repaired later.
      symlinkSync("/nowhere", join(directory, name));
      expect(configures()).toBe(true);
      rmSync(directory, { recursive: true });
    },
  );
});
