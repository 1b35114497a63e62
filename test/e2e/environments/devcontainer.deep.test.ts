/** A project's devcontainer.json over real parts: git, buildah, sandboxes and the agent runtime. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { buildLacks, DockerfileProject } from "../../support/service/dockerfile-project.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const FILE = ".devcontainer/devcontainer.json";
const MANIFEST = `[environment]\ndevcontainer = "${FILE}"\n`;
const DOCKERFILE = `FROM scratch AS base
ADD .platform/base.tar /
ARG GREETING
RUN printf "#!/bin/sh\\necho $GREETING from the image\\n" > /bin/greet && chmod 755 /bin/greet
RUN [ ! -e .devcontainer/devcontainer.json ]
ENV LEVEL=of-the-image
FROM base
RUN false
`;
const DEVCONTAINER = {
  name: "Greeter",
  build: { dockerfile: "Dockerfile", context: "..", target: "base", args: { GREETING: "good day" } },
  containerEnv: { LEVEL: "of-the-file", FOLDER: "${containerWorkspaceFolder}", A_SECRET: "of-the-file" },
  onCreateCommand: { one: "greet > /workspace/greeting.txt", two: ["touch", "it's there"] },
  postCreateCommand: "echo $A_SECRET $FOLDER > prepared.txt && git check-ignore -q x || true",
  postAttachCommand: "touch attached",
  remoteUser: "dev",
};
/** As people write it. */
const text = (file: object): string => `// For editors, and for agents.\n${JSON.stringify(file, null, 2)}\n`;

let installation: Installation;
let life: Life;
let images: string;
let project: DockerfileProject;

const environment = (): Promise<Json> => project.call("GET", "environment");
const session = (): Promise<LiveSession> => LiveSession.startIn(life, project.id);
/** The command has run before the first message, so it has run when this one is answered. */
const prepared = (one: LiveSession): Promise<void> =>
  vi.waitFor(async () => {
    const { items } = await one.call("GET", "conversation");
    expect(JSON.stringify(items)).toContain("The setup command is done.");
  }, POLL);

describe.skipIf(buildLacks !== "")(`a project's devcontainer.json ${buildLacks}`, () => {
  beforeAll(async () => {
    images = await mkdtemp(path.join(tmpdir(), "platform-test-devcontainer-"));
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

  it("gives a session its image, its variables and its commands", { timeout: TEST_MS }, async () => {
    await project.call("PUT", "secrets/A_SECRET", { value: "of-the-project" });
    await project.merge({
      [FILE]: text(DEVCONTAINER),
      ".devcontainer/Dockerfile": DOCKERFILE,
      "platform.toml": MANIFEST,
    });
    const first = await session();
    await prepared(first);
    await first.run(
      [
        '[ "$(greet)" = "good day from the image" ]',
        '[ "$LEVEL $FOLDER $A_SECRET" = "of-the-file /workspace of-the-project" ]',
        '[ "$(cat greeting.txt)" = "good day from the image" ]',
        '[ "$(cat prepared.txt)" = "of-the-project /workspace" ]',
        '[ -e "it\'s there" ] && [ ! -e attached ] && [ "$(id -u)" = 1001 ]',
      ].join(" && "),
    );
    const [built] = await project.builds();
    expect(built).toMatchObject({ status: "ready", devcontainer: FILE, base: null, target: "base" });
    expect(await environment()).toMatchObject({
      kind: "devcontainer",
      devcontainer: {
        commands: ["onCreateCommand", "postCreateCommand"],
        ignored: ["remoteUser", "postAttachCommand"],
      },
    });
    expect(await life.text(`${first.path}/logs?follow=0`)).toContain(" setup # postCreateCommand\n");
    await first.stop();
  });
});
