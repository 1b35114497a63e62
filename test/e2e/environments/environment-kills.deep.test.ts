/**
 * The service is killed while it builds: in every state that a build has before its end, and then at instants of the clock. After
 * each kill there is one ready image or a named failure, and no part of the former life is left. The deep tests kill it a
 * hundred times.
 *
 * The kills in a state are sure, not by chance. One build at a time has a place, so a build stays `queued` behind another one. A
 * context of many files is read and copied slowly, so `resolving` and `exporting` last, and a step that sleeps is `building`. The
 * count of tries proves afterwards that the build had begun, and had not ended.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type EnvironmentBuildState, LIVE_BUILD_STATES } from "../../../src/machines/environment-build.ts";
import { ImageStore } from "../../../src/sandbox/images/store.ts";
import { processesSeeing } from "../../../src/sandbox/machine/processes.ts";
import { runDirectoryPath } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { buildLacks, DockerfileProject } from "../../support/service/dockerfile-project.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";

/** Kills in a state, evenly over the states. */
const IN_STATES = 40;
/** Kills at instants of the clock. */
const BY_CLOCK = 60;
const KILLS = IN_STATES + BY_CLOCK;
/** A build of this test takes about so long on an idle machine. */
const LATEST_MS = 3_000;
/** Later kills in one state come later in it. */
const LATER_MS = 80;
/** The step that sleeps lasts longer than the latest of them. */
const SLEEP_S = 1;
const LOOK = { timeout: WAIT_MS, interval: 5 };
const HOUR_MS = 3_600_000;

const ORDER: readonly string[] = [...LIVE_BUILD_STATES, "ready", "failed", "cancelled"];
const isLive = (state: string): boolean => (LIVE_BUILD_STATES as readonly string[]).includes(state);

const MANY = Object.fromEntries(
  Array.from({ length: 1_500 }, (_, index) => [`.platform/many/${index}`, `${index}\n`]),
);
const dockerfile = (kill: number): string =>
  `FROM scratch\nADD base.tar /\nCOPY many /many\nRUN sleep ${kill < IN_STATES ? SLEEP_S : 0} && echo ${kill} > /number\n`;

const entriesOf = (directory: string): readonly string[] =>
  existsSync(directory) ? readdirSync(directory).toSorted() : [];

let installation: Installation;
let images: string;
let life: Life;
let project: DockerfileProject;
/** Its build has the only place, for as long as a test wants. */
let blocker: DockerfileProject;
const killed: Record<string, number> = {};
const ended: Record<string, number> = {};
const count = (counts: Record<string, number>, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};

const settings = () => ({ PLATFORM_IMAGES_DIR: path.join(images, "kept"), PLATFORM_BUILDS_AT_ONCE: "1" });
const inData = (...names: readonly string[]): string => path.join(installation.dataDir, ...names);
/** Where the builder has its mount points. */
const builderDirectory = (): string =>
  `${runDirectoryPath(readFileSync(inData("installation-id"), "utf8").trim())}-b`;

const newest = async (): Promise<Json> => (await project.builds())[0] ?? {};

/** Waits until the newest build has another key, and this state or a later one. @returns its state */
const reached = (former: unknown, state: EnvironmentBuildState): Promise<string> =>
  vi.waitFor(async () => {
    const { key, status } = await newest();
    expect(key).not.toBe(former);
    expect(ORDER.indexOf(String(status))).toBeGreaterThanOrEqual(ORDER.indexOf(state));
    return String(status);
  }, LOOK);

const block = async (): Promise<void> => {
  await blocker.call("POST", "environment/builds", {});
  await vi.waitFor(
    async () => expect((await blocker.builds())[0]).toMatchObject({ status: "building" }),
    POLL,
  );
};
const unblock = (): Promise<void> =>
  vi.waitFor(async () => {
    const [{ id, status } = {}] = await blocker.builds();
    if (isLive(String(status))) await blocker.call("POST", `environment/builds/${String(id)}/cancel`);
    expect(status).toBe("cancelled");
  }, POLL);

/** Begins a build, kills the service, and starts it again. @returns the state that the last look before the kill saw */
const killOnce = async (kill: number, former: unknown): Promise<string> => {
  const inState = kill < IN_STATES ? LIVE_BUILD_STATES[kill % LIVE_BUILD_STATES.length] : undefined;
  if (inState === "queued") await block();
  await project.merge({ ".platform/Dockerfile": dockerfile(kill) });
  let state: string;
  if (inState === undefined) {
    // Evenly, without a random number, so that a run can be repeated.
    await sleep((LATEST_MS * ((kill * 37) % KILLS)) / KILLS);
    const { key, status } = await newest();
    state = key === former ? "none" : String(status);
  } else {
    state = await reached(former, inState);
    const isLong = inState === "queued" || inState === "building";
    if (isLong) await sleep(LATER_MS * Math.floor(kill / LIVE_BUILD_STATES.length));
  }
  await life.end("SIGKILL");
  life = await installation.start(settings());
  await project.moveTo(life);
  await blocker.moveTo(life);
  if (inState === "queued") await unblock();
  return state;
};

/** Remains of a build that is over, besides its image and its layers. */
const leftovers = (ids: readonly string[]): readonly string[] => [
  ...processesSeeing(builderDirectory()).map((pid) => `process ${pid}`),
  ...entriesOf(inData("environments/contexts")),
  ...entriesOf(inData("environments/builds")),
  ...ids.filter((id) => readFileSync("/proc/mounts", "utf8").includes(id)),
  ...ids.flatMap((id) =>
    execFileSync("find", ["/sys/fs/cgroup", "-maxdepth", "5", "-name", id], { encoding: "utf8" })
      .split("\n")
      .filter(Boolean),
  ),
];

describe.skipIf(buildLacks !== "")(`a service that is killed while it builds ${buildLacks}`, () => {
  beforeAll(async () => {
    images = await mkdtemp(path.join(tmpdir(), "platform-test-kills-"));
    await chmod(images, 0o755);
    installation = await Installation.open();
    life = await installation.start(settings());
    blocker = await DockerfileProject.open(life, installation);
    await blocker.merge({
      ".platform/Dockerfile": "FROM scratch\nADD base.tar /\nRUN sleep 1000\n",
      "platform.toml": "",
    });
    await vi.waitFor(async () => expect(await blocker.builds()).toHaveLength(1), POLL);
    await unblock();
    project = await DockerfileProject.open(life, installation);
    await project.merge({ ...MANY, ".platform/Dockerfile": dockerfile(-1), "platform.toml": "" });
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    if (images !== undefined) await rm(images, { recursive: true, force: true });
  }, TEST_MS);

  it(
    `has one ready image or a named failure after each of ${KILLS} kills, and no part of the former life [E10]`,
    async () => {
      let { key } = await project.overAfter(undefined);
      try {
        for (let kill = 0; kill < KILLS; kill += 1) {
          const state = await killOnce(kill, key);
          const over = await project.overAfter(key);
          ({ key } = over);
          const { id, status, tries } = over;
          const wasThere = tries === (state === "queued" ? 1 : 2);
          count(killed, isLive(state) && !wasThere ? `after ${state}` : state);
          count(ended, String(status));
          expect(over, JSON.stringify(over)).toMatchObject(
            status === "ready"
              ? { image: { files: expect.any(Number) as number } }
              : { failure: { code: "interrupted" } },
          );
          // One build of each key, and one image of each build.
          expect((await project.builds()).filter((build) => build["key"] === key)).toHaveLength(1);
          const named = entriesOf(path.join(images, "kept/names")).filter((name) => !name.startsWith("."));
          expect(named.length).toBe(1 + (ended["ready"] ?? 0));
          await expect.poll(() => leftovers([String(id)]), POLL).toEqual([]);
        }
      } finally {
        process.stdout.write(`killed in ${JSON.stringify(killed)}, ended as ${JSON.stringify(ended)}\n`);
      }
      for (const state of LIVE_BUILD_STATES) expect(killed[state] ?? 0, state).toBeGreaterThan(0);
    },
    2 * HOUR_MS,
  );

  it("leaves no process, no working container, no broken store and no part of an image [E10]", async () => {
    expect(await life.end("SIGTERM")).toBe(0);
    await expect.poll(() => installation.processes(), POLL).toEqual([]);
    expect(processesSeeing(builderDirectory())).toEqual([]);
    expect(entriesOf(inData("environments"))).toEqual(["builds", "contexts", "stores"]);
    const stores = entriesOf(inData("environments/stores"));
    // A project's store goes with a build that was killed in it, and comes with the next one.
    expect(stores.length).toBeGreaterThan(0);
    expect(stores.length).toBeLessThanOrEqual(2);
    for (const store of stores) {
      expect(entriesOf(inData("environments/stores", store))).toEqual(["layers", "record.json"]);
      const containers = inData("environments/stores", store, "layers/overlay-containers/containers.json");
      expect(JSON.parse(readFileSync(containers, "utf8"))).toEqual([]);
    }
    // An image that was half copied goes when it is old enough to belong to no import under way.
    const store = new ImageStore(path.join(images, "kept"));
    const kept = (await store.list()).map(({ tree }) => path.basename(path.dirname(tree.root)));
    expect(kept).toHaveLength(1 + (ended["ready"] ?? 0));
    // oxlint-disable-next-line no-restricted-properties -- the files' times are those of the machine's clock
    await store.prune(new Set(), Date.now() + 3 * HOUR_MS);
    expect(entriesOf(store.directory)).toEqual([...kept, "names"].toSorted());
  });
});
