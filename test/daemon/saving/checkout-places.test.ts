/** Where a checkout puts its credential, and where a checkout of links leads: nowhere it should not. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { PROJECT_ID, Running, TOKEN, type RunOptions } from "../support/running.ts";
import { signal } from "../support/served.ts";

let running: Running | null = null;
const start = async (options: RunOptions = {}): Promise<Running> => {
  running = await Running.start(options);
  return running;
};
const bin = mkdtempSync(join(tmpdir(), "git-shim-"));
afterEach(async () => {
  vi.unstubAllEnvs();
  await running?.dispose();
  running = null;
});
afterAll(() => rmSync(bin, { recursive: true, force: true }));

/** Has every git of the test leave its arguments, its environment, and what it starts in turn. @returns the file. */
const traceGit = (): string => {
  const trace = join(bin, "trace");
  const git = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const script = `#!/bin/sh\nprintf '%s\\n' "$*" >> '${trace}'\nenv >> '${trace}'\nGIT_TRACE='${trace}' exec '${git}' "$@"\n`;
  writeFileSync(join(bin, "git"), script);
  chmodSync(join(bin, "git"), 0o755);
  vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
  return trace;
};

test("a checkout's credential is not in an address, an argument or an environment of git [G04]", async () => {
  const trace = traceGit();
  const daemon = await start();
  await daemon.logged("ready");
  await daemon.git("commit", "--quiet", "--allow-empty", "-m", "work");
  await daemon.git("push", "--quiet", "origin", "HEAD");
  const traced = readFileSync(trace, "utf8");
  // The program that git starts to speak HTTP gets the address, so the trace contains it.
  expect(traced).toContain(`remote-http origin ${daemon.service.repoUrl}`);
  const { password } = daemon.service.state;
  for (const secret of [password, Buffer.from(`x-session:${password}`).toString("base64"), TOKEN]) {
    expect(traced).not.toContain(secret);
    expect(daemon.service.seen.join("\n")).not.toContain(secret);
  }
  expect((await daemon.git("config", "--get-all", "remote.origin.url")).trim()).toBe(daemon.service.repoUrl);
  expect(daemon.service.repoUrl).not.toContain("@");
});

/** A daemon whose session branch has these links, by name. */
const withLinks = async (links: Readonly<Record<string, string>>): Promise<Running> => {
  const gate = signal();
  const daemon = await start({ prepare: ({ state }) => (state.gate = gate.given) });
  const seed = join(daemon.directory, "seed");
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", seed, "-c", "user.name=s", "-c", "user.email=s@example.com", ...args]);
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(seed, name));
  git("add", "-A");
  git("commit", "-q", "-m", "links");
  git("push", "-q", join(daemon.directory, `${PROJECT_ID}.git`), `main:refs/heads/${daemon.sessionId}`);
  gate.give();
  await daemon.logged("ready");
  return daemon;
};

const configDirOf = async (daemon: Running): Promise<string> => {
  const environment = JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;
  return environment["AGENT_CONFIG_DIR"] ?? "";
};

describe("a checkout with links that lead outside", () => {
  test("keeps its config directory inside the checkout, and health reports it [G07]", async () => {
    const daemon = await withLinks({ ".platform": "/etc" });
    const workspace = realpathSync(daemon.layout.workspace);
    expect(realpathSync(join(daemon.layout.workspace, ".platform"))).toBe("/etc");
    expect(await configDirOf(daemon)).toBe(join(workspace, ".git/runtime"));
    const { status, error } = await daemon.health();
    expect([status, error]).toEqual([
      "degraded",
      expect.stringContaining("must not point outside the repository"),
    ]);
  });

  test("reads the manifest from the commit, never through the link [G07, M16]", async () => {
    const outside = join(bin, "outside.toml");
    writeFileSync(outside, '[runtime]\nconfig_dir = "taken/from/outside"\n');
    const daemon = await withLinks({ "platform.toml": outside });
    expect(await configDirOf(daemon)).toBe(join(daemon.layout.workspace, ".platform/runtime"));
    expect((await daemon.health()).error).toContain("platform.toml is not valid TOML");
  });
});
