/**
 * The service is killed a hundred times while it builds, in every state of a build. After each kill there is one ready
 * image or a named failure, and no part of the former life is left.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { buildLacks, DockerfileProject } from "../support/service/dockerfile-project.ts";
import { Installation } from "../support/service/process-service.ts";

const KILLS = 100;
/** A build of this test takes about two seconds on an idle machine. */
const LATEST_MS = 3_000;

const entriesOf = (directory: string): readonly string[] =>
  existsSync(directory) ? readdirSync(directory) : [];

it.skipIf(buildLacks !== "")(
  `builds survive ${KILLS} kills ${buildLacks}`,
  async () => {
    const images = await mkdtemp(path.join(tmpdir(), "platform-test-kills-"));
    await chmod(images, 0o755);
    const settings = { PLATFORM_IMAGES_DIR: path.join(images, "kept") };
    const installation = await Installation.open();
    let life = await installation.start(settings);
    const project = await DockerfileProject.open(life, installation);
    const killed: Record<string, number> = {};
    const ended: Record<string, number> = {};
    let key: unknown;
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        const dockerfile = `FROM scratch\nADD base.tar /\nRUN echo ${kill} > /number\n`;
        await project.merge({ ".platform/Dockerfile": dockerfile, "platform.toml": "" });
        // Evenly over the states of a build, without a random number, so that a run can be repeated.
        await sleep((LATEST_MS * ((kill * 37) % KILLS)) / KILLS);
        const [before] = await project.builds();
        const state = String(before?.["key"] === key ? "none" : before?.["status"]);
        killed[state] = (killed[state] ?? 0) + 1;
        await life.end("SIGKILL");
        life = await installation.start(settings);
        await project.moveTo(life);
        const over = await project.overAfter(key);
        key = over["key"];
        const status = String(over["status"]);
        ended[status] = (ended[status] ?? 0) + 1;
        expect(over, JSON.stringify(over)).toMatchObject(
          status === "ready"
            ? { image: { files: expect.any(Number) as number } }
            : { failure: { code: "interrupted" } },
        );
        // One build of each key, and one image of each build.
        expect((await project.builds()).filter((build) => build["key"] === key)).toHaveLength(1);
        expect(entriesOf(path.join(installation.dataDir, "environments/contexts"))).toEqual([]);
        expect(entriesOf(path.join(installation.dataDir, "environments/builds"))).toEqual([]);
        expect(readFileSync("/proc/mounts", "utf8")).not.toContain(String(over["id"]));
        const named = entriesOf(path.join(images, "kept/names")).filter((name) => !name.startsWith("."));
        expect(named.length).toBe(ended["ready"] ?? 0);
      }
    } finally {
      process.stdout.write(`killed in ${JSON.stringify(killed)}, ended as ${JSON.stringify(ended)}\n`);
      await life.end("SIGTERM");
      await installation.close();
      await rm(images, { recursive: true, force: true });
    }
  },
  60 * 60_000,
);
