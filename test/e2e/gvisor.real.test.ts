/**
 * A service whose sandboxes run under gVisor, with the real agent runtime: the agent clones, commits and pushes; a
 * service that was killed finds its sandbox again; and the doctor ends what one left that never comes back.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { release, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runDirectoryPath } from "../../src/sandbox/machine/disk/run-directory.ts";
import { busybox } from "../support/machine/image-archives.ts";
import { processesOfSandbox } from "../support/machine/processes-seeing.ts";
import { lacksRunsc, runsc } from "../support/machine/runsc.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { TEST_MS } from "../support/patience.ts";
import { PackageRegistry } from "../support/servers/package-registry.ts";
import { LiveSession, POLL } from "../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";
import {
  checkImages,
  PACKAGES_HOST,
  packageSettings,
  platformOf,
  worksThroughKill,
} from "./each-provider.ts";
import { isDeep, onlyDeep } from "../support/vitest/rings.ts";

const CLI = path.join(import.meta.dirname, "../../src/operator.ts");

/** An import of an image unpacks it under bubblewrap. */
const lacks =
  lacksRunsc ??
  (sandboxesStartHere && busybox !== undefined ? null : "(needs bubblewrap and busybox-static)");

/** Fails in a sandbox that shares this machine's kernel. It needs no program besides the shell. */
const OWN_KERNEL = `read -r _ _ kernel _ < /proc/version && [ "$kernel" != ${release()} ]`;

describe.skipIf(lacks !== null)(`a session under gVisor ${lacks ?? ""}`, () => {
  const database = useRunDatabase();
  let installation: Installation;
  let images = "";
  let life: Life;
  let registry: PackageRegistry;

  const settings = (provider = "gvisor"): Record<string, string> => ({
    ...database(),
    PLATFORM_SANDBOX_PROVIDER: provider,
    PLATFORM_RUNSC: runsc ?? "",
    PLATFORM_IMAGES_DIR: path.join(images, "kept"),
    ...packageSettings(registry),
    // Images of the deep tests have no Node, and there the agent runtime is opencode.
    ...(isDeep ? {} : LIGHT_AGENT),
  });
  const platform = platformOf(() => ({ installation, settings: settings() }));
  beforeAll(async () => {
    images = mkdtempSync(path.join(tmpdir(), "platform-test-gvisor-"));
    await chmod(images, 0o755);
    [installation, registry] = await Promise.all([Installation.open(), PackageRegistry.open(PACKAGES_HOST)]);
    life = await installation.start(settings());
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    registry?.close();
    if (images !== "") await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  it(
    "clones, commits and pushes, also after its service was killed, and brings back what was not pushed",
    { timeout: TEST_MS },
    async () => {
      // The later service takes gVisor by itself, because it starts here.
      const begin = () => installation.start(settings("auto"));
      life = await worksThroughKill({ installation, life, provider: "gvisor", also: OWN_KERNEL }, begin);
    },
  );

  onlyDeep(() => {
    checkImages(() => ({
      installation,
      life,
      provider: "gvisor",
      images,
      platform,
      registry,
      also: OWN_KERNEL,
    }));
  });
});

onlyDeep(() => {
  describe.skipIf(lacksRunsc !== null)(
    `a sandbox under gVisor whose service never comes back ${lacksRunsc ?? ""}`,
    () => {
      let installation: Installation;
      let runDir = "";
      let sandboxId = "";

      beforeEach(async () => {
        installation = await Installation.open();
        const life = await installation.start({
          PLATFORM_SANDBOX_PROVIDER: "gvisor",
          PLATFORM_RUNSC: runsc ?? "",
          ...LIGHT_AGENT,
        });
        const session = await LiveSession.start(life, installation);
        sandboxId = String((await session.call("GET", "sandbox"))["id"]);
        const installationId = readFileSync(
          path.join(installation.dataDir, "installation-id"),
          "utf8",
        ).trim();
        runDir = runDirectoryPath(installationId);
        await life.end("SIGKILL");
        expect(processesOfSandbox(sandboxId)).not.toEqual([]);
      }, TEST_MS);
      afterEach(async () => {
        for (const pid of processesOfSandbox(sandboxId)) process.kill(pid, "SIGKILL");
        await rm(runDir, { recursive: true, force: true });
        await installation?.close();
      }, TEST_MS);

      const orphans = async (...more: readonly string[]): Promise<readonly Json[]> => {
        const args = [CLI, "doctor", "--orphans", "--json", "--of", installation.dataDir, ...more];
        const { stdout } = await promisify(execFile)(process.execPath, args);
        return (JSON.parse(stdout) as { readonly orphans: readonly Json[] }).orphans;
      };

      it(
        "is listed and ended by the doctor, with all that belongs to it [I9]",
        { timeout: TEST_MS },
        async () => {
          const left = (await orphans()).find(({ kind }) => kind === "sandbox");
          expect(left).toMatchObject({ what: sandboxId, pids: processesOfSandbox(sandboxId) });
          const ended = await orphans("--end", "--yes");
          expect(ended.map(({ problem }) => problem)).toEqual(ended.map(() => null));
          expect(processesOfSandbox(sandboxId)).toEqual([]);
          expect(existsSync(runDir)).toBe(false);
          expect(spawnSync("find", ["/sys/fs/cgroup", "-name", sandboxId], { encoding: "utf8" }).stdout).toBe(
            "",
          );
        },
      );

      it("ends itself if its run directory is removed", { timeout: TEST_MS }, async () => {
        await rm(runDir, { recursive: true });
        await expect.poll(() => processesOfSandbox(sandboxId), POLL).toEqual([]);
      });
    },
  );
});
