/**
 * A project's Dockerfile, with the real service, buildah, sandboxes and agent runtime: a person adds a tool to the
 * sandboxes by a change request, breaks the build, and mends it.
 */
import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { firstBlockUid } from "../../src/builder/buildah/layer-stores.ts";
import { findBuildTools } from "../../src/builder/buildah/requirements.ts";
import { gitOk } from "../git/git-client.ts";
import { busybox, writeToolImage } from "../support/machine/image-archives.ts";
import { LiveSession, POLL } from "../support/service/live-session.ts";
import { Installation, type Json, type Life, TOKEN } from "../support/service/process-service.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";

const lacks = (() => {
  const found = findBuildTools(process.env["PATH"] ?? "", firstBlockUid(""));
  if ("remedy" in found) return `(${found.remedy})`;
  return sandboxesStartHere && busybox !== undefined ? "" : "(needs bubblewrap and busybox-static)";
})();

const DOCKERFILE = `FROM scratch
ADD base.tar /
ARG GREETING
RUN printf "#!/bin/sh\\necho $GREETING from the image\\n" > /bin/greet && chmod 755 /bin/greet
`;
const BROKEN = `${DOCKERFILE}RUN echo the reason && exit 7\n`;

let installation: Installation;
let life: Life;
/** Sandboxes' users can enter it, other than the installation's own directory. */
let images: string;
/** A clone of the project, in which its author works. */
let clone: string;
let projectId: string;

const builds = async (): Promise<readonly Json[]> =>
  (await life.call("GET", `/v1/projects/${projectId}/environment/builds`))["builds"] as readonly Json[];
const environment = (): Promise<Json> => life.call("GET", `/v1/projects/${projectId}/environment`);

/** Commits files on a branch, and merges it by a change request. */
const merge = async (files: Readonly<Record<string, string>>): Promise<void> => {
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(clone, name), content);
  await gitOk(clone, "add", "--all");
  await gitOk(clone, "-c", "user.name=Mona", "-c", "user.email=mona@localhost", "commit", "-qm", "Change");
  const branch = `change-${randomUUID()}`;
  await gitOk(clone, "push", "--quiet", "origin", `HEAD:refs/heads/${branch}`);
  const requests = `/v1/projects/${projectId}/change-requests`;
  const { number } = await life.call("POST", requests, { head_ref: branch, title: "Change" });
  await life.call("POST", `${requests}/${String(number)}/merge`, {});
};

/** Waits until the newest build is over. */
const overBuild = (key: unknown): Promise<Json> =>
  vi.waitFor(async () => {
    const [newest] = await builds();
    expect(newest?.["key"]).not.toBe(key);
    expect(newest?.["status"]).toMatch(/ready|failed/);
    return newest as Json;
  }, POLL);

const session = async (): Promise<LiveSession> => LiveSession.startIn(life, projectId);

describe.skipIf(lacks !== "")(`the environment of a project ${lacks}`, () => {
  beforeAll(async () => {
    images = await mkdtemp(path.join(tmpdir(), "platform-test-environment-"));
    await chmod(images, 0o755);
    installation = await Installation.open();
    life = await installation.start({ PLATFORM_IMAGES_DIR: path.join(images, "kept") });
    projectId = await life.project(installation.sample);
    // Another project imports it.
    clone = path.join(path.dirname(installation.sample), "clone");
    const origin = new URL(`/v1/git/${projectId}.git`, life.url);
    origin.username = "token";
    origin.password = TOKEN;
    await gitOk(images, "clone", "--quiet", origin.href, clone);
    await mkdir(path.join(clone, ".platform"), { recursive: true });
    await mkdir(path.join(images, "root"));
    await writeToolImage(path.join(images, "root"), path.join(images, "busybox.tar"));
    await copyFile(path.join(images, "busybox.tar"), path.join(clone, ".platform/base.tar"));
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    if (images !== undefined) await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  it("is this machine until the project has a Dockerfile", async () => {
    expect(await environment()).toMatchObject({ kind: "machine", builder: "buildah", current: null });
    expect(await builds()).toEqual([]);
  });

  it("has the tool that the Dockerfile adds; a second session builds nothing [E01]", { timeout: TEST_MS }, async () => {
    await merge({
      ".platform/Dockerfile": DOCKERFILE,
      "platform.toml": '[environment.args]\nGREETING = "good day"\n',
    });
    // The first build is waited for, whoever began it.
    const first = await session();
    await first.run('[ "$(greet)" = "good day from the image" ] && [ ! -e /usr/bin/apt-get ]');
    const [built] = await builds();
    expect(built).toMatchObject({ status: "ready", dockerfile: ".platform/Dockerfile", tries: 1 });
    expect(await first.call("GET", "sandbox")).toMatchObject({
      environment: { build_id: built?.["id"], stale: false },
    });
    const second = await session();
    await second.run("greet");
    expect(await builds()).toHaveLength(1);
    await Promise.all([first.stop(), second.stop()]);
  });

  it("is not built again for another file, and is for a file of the context [E03]", { timeout: TEST_MS }, async () => {
    const [before] = await builds();
    await merge({ "README.md": "Something else.\n" });
    await vi.waitFor(async () => {
      const { dockerfile } = (await environment()) as { dockerfile: Json };
      expect(dockerfile["commit"]).not.toBe(before?.["commit"]);
      expect(dockerfile["key"]).toBe(before?.["key"]);
    }, POLL);
    expect(await builds()).toHaveLength(1);
    await merge({ ".platform/note.txt": "part of the context\n" });
    expect(await overBuild(before?.["key"])).toMatchObject({ status: "ready", cause: "manifest" });
  });

  it("names the line of a step that fails, and the session has the last image [E04]", { timeout: TEST_MS }, async () => {
    const [before] = await builds();
    await merge({ ".platform/Dockerfile": BROKEN });
    const failed = await overBuild(before?.["key"]);
    expect(failed).toMatchObject({
      status: "failed",
      failure: { code: "step_failed", line: 5, exit: 7, tail: expect.stringContaining("the reason") as string },
    });
    const { pieces } = (await life.call(
      "GET",
      `/v1/projects/${projectId}/environment/builds/${String(failed["id"])}/log`,
    )) as { pieces: readonly { text: string }[] };
    expect(pieces.map(({ text }) => text).join("")).toContain("the reason\n");
    const stale = await session();
    await stale.run("greet");
    expect(await stale.call("GET", "sandbox")).toMatchObject({
      environment: { build_id: before?.["id"], stale: true },
    });
    await stale.stop();
  });

  it("fails a session of a project without an image, with the reason; mended, it recovers [E04]", { timeout: TEST_MS }, async () => {
    // Another project with the same content has no image yet.
    const other = await life.project(clone);
    const { id } = await life.call("POST", `/v1/projects/${other}/sessions`, {});
    const failed = await life.session(other, String(id), ["running", "failed"]);
    expect(failed).toMatchObject({
      status: "failed",
      failure: {
        code: "environment_failed",
        message: expect.stringMatching(/step 5 on line 5 failed with exit code 7(?:.|\n)*the reason/) as string,
      },
    });
    const count = (await builds()).length;
    await merge({ ".platform/Dockerfile": DOCKERFILE });
    // The image of the former content is still there.
    await vi.waitFor(async () => {
      expect(await environment()).toMatchObject({ current: { status: "ready" } });
    }, POLL);
    expect(await builds()).toHaveLength(count);
    const mended = await session();
    await mended.run("greet");
    expect(await mended.call("GET", "sandbox")).toMatchObject({ environment: { stale: false } });
    await mended.stop();
  });

  it("keeps its images over a restart, and builds again what was removed", { timeout: TEST_MS }, async () => {
    const count = (await builds()).length;
    await life.end("SIGTERM");
    life = await installation.start({ PLATFORM_IMAGES_DIR: path.join(images, "kept") });
    const kept = await session();
    await kept.run("greet");
    expect(await builds()).toHaveLength(count);
    await kept.stop();
    rmSync(path.join(images, "kept"), { recursive: true });
    const again = await session();
    await again.run("greet");
    expect(await builds()).toHaveLength(count + 1);
    await again.stop();
  });
});
