/** The environment of a project whose newest Dockerfile is being built, and its earlier builds. */
import type { FakeEnvironment } from "../fakes/fake-environment.ts";

type Json = Readonly<Record<string, unknown>>;

const ago = (now: number, seconds: number) => new Date(now - seconds * 1000).toISOString();

/** The newest build, which runs; the one on whose image sandboxes run; and an older one that failed. */
export const BUILD_ID = "01995f2c-b000-7b0e-8a44-b7d15c2a0b01";
export const READY_BUILD_ID = "01995f2b-b000-7b0e-8a44-b7d15c2a0b02";
export const FAILED_BUILD_ID = "01995f2a-b000-7b0e-8a44-b7d15c2a0b03";

const KEY = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const INSTRUCTION = "RUN apt-get update && apt-get install --yes --no-install-recommends python3 ripgrep";

const TAIL = `Reading package lists...
E: Unable to locate package pyhton3
`;

const source = {
  context: ".platform",
  target: "dev",
  secrets: ["NPM_TOKEN"],
  devcontainer: null,
  base: null,
  args: { NODE_VERSION: "24", MIRROR: "https://packages.example.org/a/long/path/to/the/mirror/of/debian" },
  commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
  key: KEY,
};

const build = (now: number, rest: Json): Json => ({
  id: BUILD_ID,
  node_id: "5b9e7d7c-0a43-4a0e-93f1-2d1f6a4a8c11",
  status: "building",
  cause: "manifest",
  requested_by: null,
  dockerfile: ".platform/Dockerfile",
  ...source,
  tries: 1,
  step: { step: 2, line: 3, instruction: INSTRUCTION },
  image: null,
  failure: null,
  created_at: ago(now, 80),
  begun_at: ago(now, 75),
  ended_at: null,
  ...rest,
});

/** Of a build that failed at its second step. */
export const STEP_FAILED = {
  code: "step_failed",
  message: "The build failed: step 2 on line 3 failed with exit code 100.",
  step: 2,
  line: 3,
  exit: 100,
  tail: TAIL,
};

/** A devcontainer.json that the project uses. */
export const DEVCONTAINER = {
  path: ".devcontainer/devcontainer.json",
  used: true,
  problem: null,
  variables: { NODE_ENV: "development", CACHE: "/workspace/.cache/with/a/long/path" },
  commands: ["onCreateCommand", "postCreateCommand"],
  ignored: ["remoteUser", "postAttachCommand", "containerEnv.GITHUB_TOKEN"],
};

export const sampleEnvironment = (now: number, projectId: string): FakeEnvironment => {
  const earlier = { key: KEY.replace("9f86", "ab12"), commit: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246" };
  const builds = [
    build(now, {}),
    build(now, {
      ...earlier,
      id: READY_BUILD_ID,
      status: "ready",
      cause: "asked",
      requested_by: "u",
      image: { digest: `sha256:${KEY}`, bytes: 412_345_678, files: 23_456 },
      created_at: ago(now, 4000),
      begun_at: ago(now, 3990),
      ended_at: ago(now, 3890),
    }),
    build(now, {
      ...earlier,
      id: FAILED_BUILD_ID,
      status: "failed",
      cause: "session",
      tries: 2,
      failure: STEP_FAILED,
      created_at: ago(now, 9000),
      begun_at: ago(now, 8990),
      ended_at: ago(now, 8960),
    }),
  ].map((one) => Object.assign(one, { project_id: projectId }));
  return {
    environment: {
      kind: "dockerfile",
      image: null,
      setup: "cp .env.example .env\nnpm ci\n",
      dockerfile: { path: ".platform/Dockerfile", ...source },
      devcontainer: null,
      builder: "buildah",
      current: BUILD_ID,
      image_of: READY_BUILD_ID,
      bases: [
        {
          reference: "images.example.com/team/debian:13",
          built_digest: `sha256:${"a".repeat(64)}`,
          digest: `sha256:${"b".repeat(64)}`,
          looked_up_at: ago(now, 3600),
          problem: null,
          due_at: ago(now, -3600),
        },
      ],
      waiting: { wanted: 2, ready: 1, for_triggers: 0, possible: true },
    },
    builds,
    buildLogs: {
      [BUILD_ID]: [
        "[step 1, line 1] FROM docker.io/library/debian:13-slim\n",
        `[step 2, line 3] ${INSTRUCTION}\n`,
        "Get:1 http://packages.example/debian trixie InRelease [140 kB]\n",
      ],
      [READY_BUILD_ID]: ["[step 1, line 1] FROM docker.io/library/debian:13-slim\n", "Copied 23456 files.\n"],
      [FAILED_BUILD_ID]: [`[step 2, line 3] ${INSTRUCTION}\n`, TAIL],
    },
  };
};
