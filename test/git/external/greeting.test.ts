/**
 * Git's greeting in version 2 before the first request, which the service sends in its place from the second time on.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { smartHttp, type SmartHttp } from "../../../src/git/server/smart-http.ts";
import { gitStandIn } from "../git-stand-in.ts";
import { readerPolicy } from "../server/policies.ts";
import { scene, useScene } from "../scene.ts";

useScene();
afterEach(() => vi.unstubAllEnvs());

const greeting = (endpoint: SmartHttp, protocol = "version=2"): Promise<string> =>
  Effect.gen(function* () {
    const { body } = yield* endpoint.advertise({
      repository: { projectId: scene.projectId },
      service: "git-upload-pack",
      policy: readerPolicy,
      protocol,
      disconnect: Effect.void,
    });
    return Buffer.concat(yield* Stream.runCollect(body)).toString("latin1");
  }).pipe(Effect.runPromise);

/** Stands in for git, and counts how often it is started; `first` is what the first start runs instead. */
const counted = (first = ""): (() => number) => {
  const log = join(mkdtempSync(join(scene.root, "starts-")), "log");
  gitStandIn(
    scene.root,
    `echo >> '${log}'\n[ $(wc -l < '${log}') -gt 1 ] || { :; ${first}\n}\nexec "$REAL" "$@"`,
  );
  return () => (existsSync(log) ? readFileSync(log, "utf8").length : 0);
};

describe("the greeting of version 2", () => {
  it("is git's own, and git is started for it once", async () => {
    const said = execFileSync("git", ["upload-pack", "--advertise-refs", scene.bare], {
      encoding: "latin1",
      env: {
        ...process.env,
        GIT_PROTOCOL: "version=2",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "uploadpack.allowFilter",
        GIT_CONFIG_VALUE_0: "true",
      },
    });
    const starts = counted();
    const endpoint = smartHttp({ directory: scene.directory });
    expect([await greeting(endpoint), await greeting(endpoint)]).toEqual([said, said]);
    expect(starts()).toBe(1);
  });

  it.each([
    ["says nothing", "exit 128"],
    ["breaks off", `printf '000eversion 2\\n0015agent=git/2'; exit 128`],
  ])("is requested again after a git process that %s", async (_name, first) => {
    const starts = counted(first);
    const endpoint = smartHttp({ directory: scene.directory });
    expect(await greeting(endpoint)).not.toMatch(/0000$/);
    expect(await greeting(endpoint)).toMatch(/^000eversion 2\n.*0000$/s);
    expect(starts()).toBe(2);
  });

  it("is not sent to a client that speaks an older version", async () => {
    const endpoint = smartHttp({ directory: scene.directory });
    await greeting(endpoint);
    expect(await greeting(endpoint, "version=1")).toContain("refs/heads/main");
    expect(await greeting(endpoint, "")).toContain("refs/heads/main");
  });
});
