/**
 * Sessions on an image, with the real agent runtime: a root with busybox alone, one with musl, and one without any program. The
 * agent works, commits and pushes in each, and finds no program of the machine.
 */
import { execFile } from "node:child_process";
import { appendFileSync, copyFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { firstBlockUid } from "../../../src/builder/buildah/layer-stores.ts";
import { findBuildTools } from "../../../src/builder/buildah/requirements.ts";
import { busybox, tarOf, writeArchive } from "../../support/machine/image-archives.ts";
import { BUNDLED_TOOLS } from "../../../src/sandbox/bundle/bundle.ts";
import { commitToSample, LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { BUSYBOX, HOSTILE, MUSL, SCRATCH, worksOn } from "../each-provider.ts";

const CLI = fileURLToPath(new URL("../../../src/operator.ts", import.meta.url));
/** The suites of other providers have the root with musl in each run. */
const ROOTS = [BUSYBOX, MUSL, SCRATCH];
const runs = sandboxesStartHere && busybox !== undefined;

/** What this machine lacks to build images. Empty if it lacks nothing. */
const cannotBuild = (() => {
  const found = findBuildTools(process.env["PATH"] ?? "", firstBlockUid(""));
  return "problem" in found ? `(${found.problem})` : "";
})();

const DOCKERFILE = `FROM scratch
ADD base.tar /
ENV GREETING="good day"
RUN printf '#!/bin/sh\\necho $GREETING from the image\\n' > /bin/greet && chmod 755 /bin/greet
`;

let installation: Installation;
let life: Life;
/** Sandboxes' users can enter it, other than the installation's own directory. */
let images: string;

const settings = () => ({ PLATFORM_IMAGES_DIR: path.join(images, "kept") });

/** `platform` on the service's machine. */
const platform = async (...args: readonly string[]): Promise<Json> => {
  const environment = { ...process.env, ...settings(), PLATFORM_DATA_DIR: installation.dataDir };
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args, "--json"], {
    env: environment,
  });
  return JSON.parse(stdout) as Json;
};

/** The sample's manifest with an image. The next project imports it. */
const nameImage = async (name: string): Promise<void> => {
  const manifest = path.join(images, "platform.toml");
  copyFileSync(path.join(installation.sample, "platform.toml"), manifest);
  const text = (await readFile(manifest, "utf8")).replace(/\n\[environment\]\n.*\n/, "");
  await rm(manifest);
  appendFileSync(manifest, `${text}\n[environment]\nimage = "${name}"\n`);
  commitToSample(installation, { "platform.toml": manifest });
};

describe.skipIf(!runs)("a session on an image (needs bubblewrap and busybox-static)", () => {
  beforeAll(async () => {
    images = await mkdtemp(path.join(tmpdir(), "platform-test-images-"));
    await chmod(images, 0o755);
    installation = await Installation.open();
    life = await installation.start(settings());
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    if (images !== undefined) await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  for (const root of ROOTS) {
    it.skipIf(root.lacks !== null)(
      `works, commits and pushes on ${root.name} ${root.lacks ?? ""} [E07]`,
      { timeout: TEST_MS },
      () => worksOn(root, { installation, life, provider: "local" }, { images, platform }),
    );
  }

  it(
    "shows no file of this machine on a hostile image, and gives no privilege [E02, E05]",
    { timeout: TEST_MS },
    () => worksOn(HOSTILE, { installation, life, provider: "local" }, { images, platform }),
  );

  it.skipIf(cannotBuild !== "")(
    `works on an image that was built from a Dockerfile ${cannotBuild}`,
    { timeout: TEST_MS },
    async () => {
      const context = path.join(images, "context");
      await mkdir(path.join(context, ".platform"), { recursive: true });
      copyFileSync(
        await BUSYBOX.write(await mkdtemp(path.join(images, "tools-"))),
        path.join(context, "base.tar"),
      );
      await writeFile(path.join(context, ".platform/Dockerfile"), DOCKERFILE);
      const built = await platform("images", "build", "greeter:2", context);
      expect(built).toMatchObject({ name: "greeter:2", digest: expect.stringMatching(/^sha256:/) as string });
      await nameImage("greeter:2");
      const session = await LiveSession.start(life, installation);
      try {
        // The image's program and its variable are the agent's.
        await session.run('[ "$(greet)" = "good day from the image" ] && [ "$GREETING" = "good day" ]');
      } finally {
        await session.stop();
      }
      await writeFile(path.join(context, ".platform/Dockerfile"), `${DOCKERFILE}RUN exit 7\n`);
      await expect(platform("images", "build", "greeter:2", context)).rejects.toThrow(
        "step 5 on line 5 failed with exit code 7",
      );
    },
  );

  it("boots without a program of the image, even if each one fails [E06]", { timeout: TEST_MS }, async () => {
    // git asks for its credential by /bin/sh, as the agent.
    const names = [...BUNDLED_TOOLS, "git", "node"].filter((name) => name !== "sh");
    const failing = ["bin", "usr/bin", "usr/local/bin", "sbin"].flatMap((directory) =>
      names.map((name) => ({
        name: `${directory}/${name}`,
        content: "#!/opt/platform/lib/tools/sh\nexit 99\n",
        mode: 0o755,
      })),
    );
    await platform(
      "images",
      "import",
      "failing",
      await writeArchive(images, "failing.tar", await tarOf(failing)),
    );
    await nameImage("failing");
    const session = await LiveSession.start(life, installation);
    try {
      // The image's programs are the agent's.
      await session.run("cat /etc/passwd; [ $? = 99 ]");
    } finally {
      await session.stop();
    }
    await platform("images", "remove", "failing");
  });

  it("fails with what to do where the image is not on the machine [E08]", { timeout: TEST_MS }, async () => {
    await nameImage("missing");
    const projectId = await life.project(installation.sample);
    const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
    const failed = await life.session(projectId, String(id), ["running", "failed"]);
    expect(failed).toMatchObject({
      status: "failed",
      failure: {
        code: "sandbox_create_failed",
        message: expect.stringContaining("platform images import missing FILE") as string,
      },
    });
  });

  it("lists and removes images", async () => {
    const { images: listed } = await platform("images", "list");
    expect((listed as readonly Json[]).map((image) => image["name"])).toEqual([
      "busybox:1",
      "empty",
      ...(cannotBuild === "" ? ["greeter:2"] : []),
      "hostile:1",
      ...(ROOTS.includes(MUSL) && MUSL.lacks === null ? ["musl:1"] : []),
    ]);
    await platform("images", "remove", "empty");
    const { images: left } = await platform("images", "list");
    expect((left as readonly Json[]).map((image) => image["name"])).not.toContain("empty");
  });
});
