/** States of a project's environment, of its builds, and of sessions that wait for one. */
import { changeBuild } from "../fakes/fake-environment.ts";
import type { World } from "../fakes/fake-service.ts";
import {
  BUILD_ID,
  DEVCONTAINER,
  FAILED_BUILD_ID,
  READY_BUILD_ID,
  STEP_FAILED,
} from "../samples/sample-environment.ts";
import { FAILED_ID, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { having, pressed, refusing, type State } from "./state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const ENVIRONMENT = `${PROJECT}/environment`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

type Json = Readonly<Record<string, unknown>>;

/** The project's environment is this, without builds. */
export const withEnvironment =
  (rest: Json) =>
  (world: World): void => {
    world.environment = { ...world.environment, dockerfile: null, current: null, image_of: null, ...rest };
    world.builds = [];
  };

/** The newest build is like this. */
export const withBuild =
  (rest: Json) =>
  (world: World): void => {
    changeBuild(world, BUILD_ID, {
      ended_at: new Date(Date.parse(String(world.builds[0]?.["begun_at"])) + 31_000).toISOString(),
      ...rest,
    });
  };

/** The build is over, and sandboxes run on its image. */
export const isReady = (world: World): void => {
  changeBuild(world, BUILD_ID, {
    ...world.builds[1],
    ...idOf(world.builds[0]),
    image: world.builds[1]?.["image"],
  });
  world.environment = { ...world.environment, image_of: BUILD_ID };
};

const idOf = (build: Json | undefined): Json => ({
  id: build?.["id"],
  key: build?.["key"],
  commit: build?.["commit"],
});

/** The sandbox of the session has this environment, and boots or has booted. */
export const withSandbox =
  (environment: Json | null, isBooted: boolean) =>
  (world: World): void => {
    world.sandbox = {
      ...world.sandbox,
      image: null,
      environment,
      status: isBooted ? "active" : "provisioning",
      boot_started_at: isBooted ? world.sandbox?.["created_at"] : null,
      ...(!isBooted && { active_at: null }),
    };
    if (isBooted) return;
    world.sessions = world.sessions.map((one, index) =>
      index === 0 ? { ...one, status: "provisioning", running_at: null } : one,
    );
  };

/** A session could not be started without an environment. */
export const failedForIt = (world: World): void => {
  const failure = {
    code: "environment_failed",
    message: `The project's environment could not be built: step 2 on line 3 failed with exit code 100. The end of its output:\n${STEP_FAILED.tail}`,
    at: world.sessions[0]?.["created_at"],
  };
  world.sessions = world.sessions.map((one) => (one["id"] === FAILED_ID ? { ...one, failure } : one));
};

const UNUSED = { used: false, variables: {}, commands: [], ignored: [] };

/** The environment of a devcontainer.json that names this image, or a Dockerfile. */
const withDevcontainer = ({ environment }: World, base: string | null): Json => ({
  ...environment,
  kind: "devcontainer",
  dockerfile: {
    ...(environment["dockerfile"] as Json),
    path: base === null ? ".devcontainer/Dockerfile" : DEVCONTAINER.path,
    context: base === null ? ".devcontainer" : "",
    devcontainer: DEVCONTAINER.path,
    base,
  },
  devcontainer: DEVCONTAINER,
});

const withRows = { hash: ENVIRONMENT, shows: ".row" };
const withBlock = { hash: ENVIRONMENT, shows: ".block" };

export const STATES_OF_ENVIRONMENT: readonly State[] = [
  { name: "environment", ...withRows },
  { name: "environment-ready", ...withRows, change: isReady },
  {
    name: "environment-failed",
    hash: ENVIRONMENT,
    shows: ".callout pre",
    change: withBuild({ status: "failed", failure: STEP_FAILED }),
  },
  { name: "environment-first", hash: ENVIRONMENT, shows: ".actions", change: having(() => ({ builds: [] })) },
  { name: "environment-machine", ...withBlock, change: withEnvironment({ kind: "machine", setup: null }) },
  {
    name: "environment-image",
    hash: ENVIRONMENT,
    shows: "section",
    change: withEnvironment({
      kind: "image",
      image: "images.example.org/team/with/a/long/path/greeter-tools:13",
    }),
  },
  {
    name: "environment-devcontainer",
    ...withRows,
    change: (world) => {
      isReady(world);
      world.environment = {
        ...withDevcontainer(world, null),
        setup:
          "echo '# onCreateCommand'\nsh -c 'npm ci'\necho '# postCreateCommand'\nsh -c 'npm run build'\n",
      };
    },
  },
  {
    name: "environment-devcontainer-image",
    ...withRows,
    change: (world) => {
      isReady(world);
      world.environment = {
        ...withDevcontainer(world, "mcr.microsoft.com/devcontainers/typescript-node:1-22-bookworm"),
        setup: null,
      };
    },
  },
  {
    name: "environment-devcontainer-unused",
    ...withBlock,
    change: withEnvironment({ kind: "machine", setup: null, devcontainer: { ...DEVCONTAINER, ...UNUSED } }),
  },
  {
    name: "environment-devcontainer-unusable",
    ...withBlock,
    change: withEnvironment({
      kind: "machine",
      setup: null,
      devcontainer: {
        ...DEVCONTAINER,
        ...UNUSED,
        problem:
          ".devcontainer/devcontainer.json, line 4, column 3: `features` is not supported. Features are not installed. Install the same programs in a Dockerfile, and name it in `build`.",
      },
    }),
  },
  {
    name: "environment-not-built-here",
    hash: ENVIRONMENT,
    shows: ".callout",
    change: (world) => {
      world.environment = {
        ...world.environment,
        builder: null,
        current: null,
        image_of: null,
        waiting: { wanted: 1, ready: 0, for_triggers: 0, possible: false },
      };
      world.builds = [];
    },
  },
  {
    name: "environment-nothing-waits",
    ...withRows,
    change: (world) => {
      world.environment = {
        ...world.environment,
        waiting: { wanted: 0, ready: 0, for_triggers: 0, possible: true },
      };
    },
  },
  {
    name: "environment-waits-for-a-trigger",
    ...withRows,
    change: (world) => {
      const waiting = { wanted: 0, ready: 1, for_triggers: 1, possible: true };
      world.environment = { ...world.environment, waiting };
    },
  },
  { name: "environment-cancel", ...withRows, act: pressed("Cancel") },
  {
    name: "environment-refused",
    ...withRows,
    change: (world) => {
      isReady(world);
      refusing("The project is archived.")(world);
    },
    act: async (page) => {
      await pressed("Build again")(page);
      await page.locator(".notices p").waitFor();
    },
  },
  { name: "build", hash: `${ENVIRONMENT}/builds/${BUILD_ID}`, shows: ".pieces > span" },
  { name: "build-ready", hash: `${ENVIRONMENT}/builds/${READY_BUILD_ID}`, shows: ".pieces > span" },
  { name: "build-failed", hash: `${ENVIRONMENT}/builds/${FAILED_BUILD_ID}`, shows: ".pieces > span" },
  {
    name: "build-long-lines",
    hash: `${ENVIRONMENT}/builds/${BUILD_ID}`,
    shows: ".pieces > span",
    change: (world) => {
      const lines = Array.from({ length: 400 }, (_, at) => `${String(at)} ${"word ".repeat(at % 60)}\n`);
      world.buildLogs[BUILD_ID] = [...lines, "x".repeat(3000)];
    },
  },
  {
    name: "build-queued",
    hash: `${ENVIRONMENT}/builds/${BUILD_ID}`,
    shows: "h1",
    change: (world) => {
      changeBuild(world, BUILD_ID, { status: "queued", step: null, begun_at: null, tries: 0 });
      world.buildLogs = {};
    },
  },
  {
    name: "session-awaits-build",
    hash: SESSION,
    shows: ".notes .callout",
    change: withSandbox({ build_id: BUILD_ID, stale: false }, false),
  },
  {
    name: "session-stale",
    hash: SESSION,
    shows: ".items > .item",
    change: withSandbox({ build_id: READY_BUILD_ID, stale: true }, true),
  },
  {
    name: "session-environment-failed",
    hash: `${PROJECT}/sessions/${FAILED_ID}`,
    shows: ".callout",
    change: failedForIt,
  },
];
