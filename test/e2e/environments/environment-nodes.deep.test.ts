/** Builds with two nodes on one database, with the real buildah. */
import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { stopSession } from "../../support/service/account-view.ts";
import { buildLacks, DockerfileProject } from "../../support/service/dockerfile-project.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

/** Each of its lines is found in the list of processes. */
const dockerfile = (mark: string, seconds: number): string =>
  `FROM scratch\nADD base.tar /\nRUN sleep ${seconds}.${mark} && echo ${mark} > /made\n`;

let scope: Scope.Closeable;
let settings: Readonly<Record<string, string>>;
/** Sandboxes' users can enter it. Each node has a directory in it. */
let images: string;
const installations: Installation[] = [];
const lives: Life[] = [];
let project: DockerfileProject;

const imagesOf = (index: number) => ({ PLATFORM_IMAGES_DIR: path.join(images, String(index)) });
const start = async (index: number): Promise<Life> => {
  const installation = (installations[index] ??= await Installation.open());
  const life = await installation.start({ ...settings, ...imagesOf(index) });
  lives[index] = life;
  return life;
};
const first = (): Life => lives[0] as Life;

/** Processes of a step, by the number in its command. */
const stepsOf = (mark: string): readonly string[] =>
  execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(`.${mark}`) && line.includes("sleep"));

const isBuilding = (key: unknown): Promise<Json> =>
  vi.waitFor(async () => {
    const [newest = {}] = await project.builds();
    expect(newest).toMatchObject({ status: "building", step: { line: 3 } });
    expect(newest["key"]).not.toBe(key);
    return newest;
  }, POLL);

describe.skipIf(buildLacks !== "")(`builds of several nodes ${buildLacks}`, () => {
  beforeAll(async () => {
    scope = Effect.runSync(Scope.make());
    images = await mkdtemp(path.join(tmpdir(), "platform-test-nodes-"));
    await chmod(images, 0o755);
    settings = {
      DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_AGENT_ADAPTER: "plain",
      PLATFORM_AGENT_COMMAND:
        "node -e require('http').createServer((q,r)=>r.end('here')).listen(4096,'127.0.0.1')",
    };
    await start(0);
    await start(1);
    project = await DockerfileProject.open(first(), installations[0] as Installation);
    await project.merge({ ".platform/Dockerfile": dockerfile("71001", 0), "platform.toml": "" });
  }, TEST_MS);
  afterAll(async () => {
    for (const life of lives) await life.end("SIGTERM");
    for (const installation of installations) await installation.close();
    if (images !== undefined) await rm(images, { recursive: true, force: true });
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }, TEST_MS);

  it("are made once on each node whose sandboxes need them", { timeout: TEST_MS }, async () => {
    const nodes = new Set<unknown>();
    // Sessions live where their actors are.
    for (let count = 0; nodes.size < 2 && count < 40; count += 1) {
      const life = lives[count % 2] as Life;
      const { id } = await life.call("POST", `/v1/projects/${project.id}/sessions`, {});
      const { status, failure } = await life.session(project.id, String(id), ["running", "failed"]);
      expect([status, failure]).toEqual(["running", null]);
      const sandbox = await project.call("GET", `sessions/${String(id)}/sandbox`);
      const { build_id: buildId } = sandbox["environment"] as Json;
      const build = await project.call("GET", `environment/builds/${String(buildId)}`);
      expect(build["status"]).toBe("ready");
      nodes.add(build["node_id"]);
      await stopSession(life, project.id, String(id));
    }
    expect(nodes.size).toBe(2);
    const builds = await project.builds();
    expect(new Set(builds.map((build) => build["node_id"])).size).toBe(builds.length);
    expect(builds.length).toBe(2);
  });

  it(
    "end where they run when they are cancelled, whichever node is asked",
    { timeout: TEST_MS },
    async () => {
      const [before] = await project.builds();
      await project.merge({ ".platform/Dockerfile": dockerfile("71002", 500) });
      await isBuilding(before?.["key"]);
      await vi.waitFor(() => expect(stepsOf("71002")).not.toEqual([]), POLL);
      // If both nodes read the new manifest in the same moment, each may have begun a build.
      const begun = (await project.builds()).filter(({ key }) => key !== before?.["key"]);
      for (const life of lives)
        for (const { id } of begun)
          await life.call("POST", `/v1/projects/${project.id}/environment/builds/${String(id)}/cancel`);
      expect(await project.overAfter(before?.["key"])).toMatchObject({
        status: "cancelled",
        failure: { code: "cancelled" },
      });
      await vi.waitFor(() => expect(stepsOf("71002")).toEqual([]), POLL);
    },
  );
});
