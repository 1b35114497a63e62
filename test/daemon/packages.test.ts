/** The settings that lead the agent's package managers to the registries. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { packageVariables, writePackageSettings } from "../../daemon/boot/packages.ts";
import { SANDBOX_LAYOUT, decodeSettings } from "../../daemon/settings.ts";
import type { LaunchSettings } from "../../src/domain/sandbox/launch.ts";

const INJECTED = {
  PLATFORM_TOKEN: "token",
  PLATFORM_PROJECT_ID: "project",
  PLATFORM_SESSION_ID: "session",
  PLATFORM_BRANCH_NAME: "session",
  PLATFORM_DEFAULT_BRANCH: "main",
  PLATFORM_REPO_URL: "http://platform.internal/",
  PLATFORM_API_URL: "http://platform.internal/v1",
  PLATFORM_SERVICE_PORT: "8000",
  PLATFORM_AGENT_NAME: "default",
};

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "platform-package-settings-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const PACKAGES = { npm: "http://npm.example.com/", pypi: "http://pypi.platform.internal/simple/" };

/** A sandbox whose Node is below the directory, as npm's own settings are. */
const settings = (launch: Partial<LaunchSettings> = {}) => {
  mkdirSync(join(directory, "image", "bin"), { recursive: true });
  mkdirSync(join(directory, "image", "etc"), { recursive: true });
  const node = join(directory, "image", "bin", "node");
  if (!existsSync(node)) writeFileSync(node, "");
  mkdirSync(join(directory, "path"), { recursive: true });
  if (!existsSync(join(directory, "path", "node"))) symlinkSync(node, join(directory, "path", "node"));
  return decodeSettings(
    INJECTED,
    {
      prefix: [],
      agentCommand: ["true"],
      adapter: "plain",
      agentEnv: {},
      commonEnv: {},
      bootDeadlineMs: 1000,
      agentPath: `/nowhere:${join(directory, "path")}`,
      packages: PACKAGES,
      ...launch,
    },
    {
      ...SANDBOX_LAYOUT,
      npmConfigFile: join(directory, "npmrc"),
      configDirectory: join(directory, "config"),
    },
  );
};
const written = (): string => readFileSync(join(directory, "npmrc"), "utf8");

describe("the settings of package managers", () => {
  it("are files that npm and pip read before all others", () => {
    const made = settings();
    writePackageSettings(made);
    expect(packageVariables(made)).toEqual({
      npm_config_globalconfig: join(directory, "npmrc"),
      XDG_CONFIG_DIRS: `${join(directory, "config")}:/etc/xdg`,
    });
    expect(written()).toContain("registry=http://npm.example.com/\nreplace-registry-host=npm.example.com\n");
    expect(readFileSync(join(directory, "config", "pip", "pip.conf"), "utf8")).toContain(
      "index-url = http://pypi.platform.internal/simple/\ntrusted-host = pypi.platform.internal\n",
    );
  });

  it("keep what the image's own file for all users says, with precedence [E22]", () => {
    const made = settings();
    writeFileSync(
      join(directory, "image", "etc", "npmrc"),
      "registry=https://npm.example.com/\ncafile=/a.pem\n",
    );
    writePackageSettings(made);
    const { status, stdout } = spawnSync("npm", ["config", "get", "registry", "cafile"], {
      cwd: directory,
      env: { PATH: process.env["PATH"], HOME: directory, ...packageVariables(made) },
      encoding: "utf8",
    });
    expect([status, stdout]).toEqual([0, "registry=https://npm.example.com/\ncafile=/a.pem\n"]);
  });

  it("show no file that the agent could not read", () => {
    const made = settings();
    const own = join(directory, "image", "etc", "npmrc");
    writeFileSync(own, "//npm.example.com/:_authToken=secret\n");
    chmodSync(own, 0o600);
    writePackageSettings(made);
    expect(written()).not.toContain("secret");
  });

  it("leave npm alone if the image names a file of its own, in any case", () => {
    const made = settings({ imageEnv: { NPM_CONFIG_GLOBALCONFIG: "/etc/mine" } });
    writePackageSettings(made);
    expect(existsSync(join(directory, "npmrc"))).toBe(false);
    expect(packageVariables(made)).not.toHaveProperty("npm_config_globalconfig");
  });

  it("are absent for registries that the sandbox may not reach", () => {
    const made = settings({ packages: { npm: null, pypi: null } });
    writePackageSettings(made);
    expect(packageVariables(made)).toEqual({});
    expect(existsSync(join(directory, "config"))).toBe(false);
  });
});
