/**
 * A project's Dockerfile, with the real service, buildah, sandboxes and agent runtime: a person adds a tool to the
 * sandboxes by a change request, breaks the build, and mends it.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildLacks, DockerfileProject } from "../../support/service/dockerfile-project.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";
import { TOOL_DOCKERFILE, TOOL_MANIFEST, toolOfDockerfile } from "../each-provider.ts";
import { deepTest } from "../../support/vitest/rings.ts";

// buildah can lose what a step prints last. So the step goes on for a second.
const BROKEN = `${TOOL_DOCKERFILE}RUN echo the reason && sleep 1 && exit 7\n`;

let installation: Installation;
let life: Life;
/** Sandboxes' users can enter it, other than the installation's own directory. */
let images: string;
let project: DockerfileProject;

const environment = (): Promise<Json> => project.call("GET", "environment");
const session = (): Promise<LiveSession> => LiveSession.startIn(life, project.id);

describe.skipIf(buildLacks !== "")(`the environment of a project ${buildLacks}`, () => {
  beforeAll(async () => {
    images = await mkdtemp(path.join(tmpdir(), "platform-test-environment-"));
    await chmod(images, 0o755);
    installation = await Installation.open();
    life = await installation.start({ PLATFORM_IMAGES_DIR: path.join(images, "kept") });
    project = await DockerfileProject.open(life, installation);
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    if (images !== undefined) await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  it("is this machine until the project has a Dockerfile", async () => {
    expect(await environment()).toMatchObject({ kind: "machine", builder: "buildah", current: null });
    expect(await project.builds()).toEqual([]);
  });

  it(
    "has the tool that the Dockerfile adds; a second session builds nothing [E13]",
    { timeout: TEST_MS },
    () => toolOfDockerfile(project, { life, provider: "local" }),
  );

  deepTest("names the line of a step that fails, and the session has the last image [E13]", async () => {
    const [before] = await project.builds();
    await project.merge({ ".platform/Dockerfile": BROKEN });
    const failed = await project.overAfter(before?.["key"]);
    expect(failed).toMatchObject({
      status: "failed",
      failure: {
        code: "step_failed",
        line: 5,
        exit: 7,
        tail: expect.stringContaining("the reason") as string,
      },
    });
    expect(await project.log(failed["id"])).toContain("the reason\n");
    const stale = await session();
    await stale.run("greet");
    expect(await stale.call("GET", "sandbox")).toMatchObject({
      environment: { build_id: before?.["id"], stale: true },
    });
    await stale.stop();
  });

  deepTest("gives a build the secrets that the manifest names [E14]", async () => {
    const [before] = await project.builds();
    const mounts = "RUN --mount=type=secret,id=BUILD_KEY wc -c < /run/secrets/BUILD_KEY > /key-length\n";
    await project.merge({
      ".platform/Dockerfile": `${TOOL_DOCKERFILE}${mounts}`,
      "platform.toml": '[environment]\nsecrets = ["BUILD_KEY"]\n[environment.args]\nGREETING = "good day"\n',
    });
    const failed = await project.overAfter(before?.["key"]);
    expect(failed).toMatchObject({
      status: "failed",
      secrets: ["BUILD_KEY"],
      failure: { code: "secret_missing", message: "The build failed: the secret BUILD_KEY has no value." },
    });
    await project.call("PUT", "secrets/BUILD_KEY", { value: "the value of the key" });
    await project.call("POST", "environment/builds", {});
    await vi.waitFor(
      async () => expect(await environment()).toMatchObject({ current: { status: "ready" } }),
      POLL,
    );
    const built = await session();
    await built.run('[ "$(cat /key-length)" = 20 ]');
    await built.stop();
  });

  deepTest(
    "keeps no secret of a build, and gives it no other: 64 are in no image, log, row or file of the service [E14]",
    async () => {
      const canaries = Object.fromEntries(
        Array.from({ length: 64 }, (_, index) => [
          `CANARY_${index}`,
          `canary${index}${randomUUID().replaceAll("-", "")}`,
        ]),
      );
      const values = Object.values(canaries);
      // As many as a manifest may name. The others are the project's, but not the build's.
      const names = Object.keys(canaries).slice(0, 20);
      const [before] = await project.builds();
      for (const [name, value] of Object.entries(canaries))
        await project.call("PUT", `secrets/${name}`, { value });
      const mounts = names.map((name) => `--mount=type=secret,id=${name}`).join(" ");
      // The step shows them, and fails once it has shown them: what it printed last is part of the failure.
      const step = (end: string) =>
        `RUN ${mounts} cat /run/secrets/* | wc -c > /length; cat /run/secrets/*; env; ${end}\n`;
      const manifest = `[environment]\nsecrets = ${JSON.stringify(names)}\n${TOOL_MANIFEST}`;
      const dockerfile = (end: string) => ({ ".platform/Dockerfile": `${TOOL_DOCKERFILE}${step(end)}` });
      await project.merge({ ...dockerfile("echo; echo shown; sleep 1; exit 7"), "platform.toml": manifest });
      const failed = await project.overAfter(before?.["key"]);
      expect(failed).toMatchObject({ status: "failed", failure: { code: "step_failed", exit: 7 } });
      await project.merge(dockerfile("echo; echo shown; sleep 1"));
      const built = await project.overAfter(failed["key"]);
      expect(built).toMatchObject({ status: "ready" });
      const logs = await Promise.all([failed, built].map(({ id }) => project.log(id)));
      for (const log of logs) expect(log).toContain("shown\n");
      const said = JSON.stringify([await project.builds(), logs]);
      expect(values.filter((value) => said.includes(value))).toEqual([]);
      const reader = await session();
      await reader.run(`[ "$(cat /length)" = ${values.slice(0, 20).join("").length} ]`);
      await reader.stop();
      // The database's files, the builder's, layers and images.
      const patterns = values.flatMap((value) => ["-e", value]);
      const found = spawnSync("grep", ["-rlaF", ...patterns, installation.dataDir, images], {
        encoding: "utf8",
      });
      expect([found.stdout, found.status]).toEqual(["", 1]);
    },
  );

  deepTest("keeps its images over a restart, and builds again what was removed", async () => {
    const count = (await project.builds()).length;
    await life.end("SIGTERM");
    life = await installation.start({ PLATFORM_IMAGES_DIR: path.join(images, "kept") });
    await project.moveTo(life);
    const kept = await session();
    await kept.run("greet");
    expect(await project.builds()).toHaveLength(count);
    await kept.stop();
    rmSync(path.join(images, "kept"), { recursive: true });
    const again = await session();
    await again.run("greet");
    expect(await project.builds()).toHaveLength(count + 1);
    await again.stop();
  });
});
