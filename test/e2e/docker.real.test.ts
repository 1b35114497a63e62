/**
 * A service whose sandboxes are containers of a Docker engine, in the deep tests with the real agent runtime: the agent clones, commits and
 * pushes; a service that was killed finds its sandbox again; a waiting sandbox gets its session; and the doctor ends what
 * a service left that never comes back.
 */
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runDirectoryPath } from "../../src/sandbox/machine/disk/run-directory.ts";
import { TestEngine, lacksEngine } from "../support/machine/container-engine.ts";
import { busybox } from "../support/machine/image-archives.ts";
import { processesOfSandbox } from "../support/machine/processes-seeing.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
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
import { deepTest, isDeep, onlyDeep } from "../support/vitest/rings.ts";

/** An import of an image unpacks it under bubblewrap. */
const lacks =
  lacksEngine ??
  (sandboxesStartHere && busybox !== undefined ? null : "(needs bubblewrap and busybox-static)");

describe.skipIf(lacks !== null)(`a session in a container ${lacks ?? ""}`, () => {
  const database = useRunDatabase();
  let engine: TestEngine;
  let installation: Installation;
  let images = "";
  let life: Life;
  let registry: PackageRegistry;

  const settings = (): Record<string, string> => ({
    PLATFORM_SANDBOX_PROVIDER: "docker",
    PLATFORM_DOCKER_SOCKET: engine.socket,
    PLATFORM_IMAGES_DIR: path.join(images, "kept"),
    ...packageSettings(registry),
    ...database(),
    PLATFORM_WARM_MEMORY_MB: "6000",
    // Images of the deep tests have no Node, and there the agent runtime is opencode.
    ...(isDeep ? {} : LIGHT_AGENT),
  });
  const platform = platformOf(() => ({ installation, settings: settings() }));
  const containers = () => engine.docker("ps", "--format", "{{.Names}}").split("\n").filter(Boolean);

  beforeAll(async () => {
    images = mkdtempSync(path.join(tmpdir(), "platform-test-docker-"));
    await chmod(images, 0o755);
    [engine, installation, registry] = await Promise.all([
      TestEngine.open(),
      Installation.open(),
      PackageRegistry.open(PACKAGES_HOST),
    ]);
    life = await installation.start(settings());
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    await engine?.close();
    registry?.close();
    if (images !== "") await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  it(
    "clones, commits and pushes, also after its service was killed, and brings back what was not pushed",
    { timeout: TEST_MS },
    async () => {
      const begin = () => installation.start(settings());
      life = await worksThroughKill({ installation, life, provider: "docker" }, begin, (id) =>
        expect(containers().join()).toContain(id),
      );
      await expect.poll(containers, POLL).toEqual([]);
    },
  );

  deepTest("gets a container that waited for it", async () => {
    const pid = await life.project(await installation.repository("[environment]\nwarm = 1\n"));
    const waiting = async () =>
      (await life.call("GET", `/v1/projects/${pid}/environment`))["waiting"] as Json;
    await expect.poll(waiting, POLL).toMatchObject({ ready: 1 });
    const session = await LiveSession.startIn(life, pid);
    expect(await session.call("GET", "sandbox")).toMatchObject({ provider: "docker", waited: true });
    await session.run("echo 1 > claimed && git add -A && git commit -qm Work && git push -q origin HEAD");
    expect(await session.filesChanged()).toEqual(["claimed"]);
    await session.stop();
  });

  onlyDeep(() => {
    checkImages(() => ({
      installation,
      life,
      provider: "docker",
      images,
      platform,
      registry,
    }));
  });

  deepTest("has what a service left ended by the doctor", async () => {
    await LiveSession.start(life, installation);
    await life.end("SIGKILL");
    const sandbox = containers().find((name) => processesOfSandbox(name.slice(-36)).length > 0) ?? "";
    const installationId = readFileSync(path.join(installation.dataDir, "installation-id"), "utf8").trim();
    const orphans = async (...more: readonly string[]) =>
      (await platform("doctor", "--orphans", "--of", installation.dataDir, ...more))[
        "orphans"
      ] as readonly Json[];
    const left = (await orphans()).filter(({ kind }) => kind === "sandbox");
    expect(left.map(({ what }) => what)).toContain(sandbox.slice(-36));
    const ended = await orphans("--end", "--yes");
    expect(ended.map(({ problem }) => problem)).toEqual(ended.map(() => null));
    expect(containers()).toEqual([]);
    expect(existsSync(runDirectoryPath(installationId))).toBe(false);
  });
});
