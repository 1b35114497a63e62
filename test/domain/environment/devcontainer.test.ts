import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  DEFAULT_DEVCONTAINER,
  DEVCONTAINER_LIMIT_BYTES,
  readDevcontainer,
} from "../../../src/domain/environment/devcontainer.ts";

const read = (file: object | string, path = DEFAULT_DEVCONTAINER) =>
  readDevcontainer(Buffer.from(typeof file === "string" ? file : JSON.stringify(file)), path);
const good = (file: object | string, path?: string) => Result.getOrThrow(read(file, path));
const bad = (file: object | string, path?: string) => Result.getFailure(read(file, path)).valueOrUndefined;

const IMAGE = { image: "debian:13" };
const nothing = { variables: {}, commands: [], setup: null, ignored: [] };

describe("the image of a devcontainer.json", () => {
  it.each([
    ["node", "docker.io/library/node"],
    ["node:24", "docker.io/library/node:24"],
    ["team/tools", "docker.io/team/tools"],
    ["docker.io/library/node:24", "docker.io/library/node:24"],
    ["mcr.microsoft.com/devcontainers/base:1-bookworm", "mcr.microsoft.com/devcontainers/base:1-bookworm"],
    ["localhost/tools", "localhost/tools"],
    ["images.example:5000/a__b/c-d:1", "images.example:5000/a__b/c-d:1"],
    [`node@sha256:${"0".repeat(64)}`, `docker.io/library/node@sha256:${"0".repeat(64)}`],
    ["x/${localWorkspaceFolderBasename}:${localEnv:TAG:7}", "docker.io/x/workspace:7"],
  ])("is read with its registry: %s", (image, full) => {
    expect(good({ image })).toEqual({ build: { kind: "image", image: full }, ...nothing });
  });

  it.each([
    "Node",
    "node 24",
    "node\nRUN id",
    "node AS x",
    "--platform=x node",
    "$NODE",
    "node:",
    "/node",
    "node/",
    "a//b",
    "a/../b",
    "node:24 # x",
    "é",
    "a".repeat(501),
  ])("is refused if it is no reference: %j [E16]", (image) => {
    expect(bad({ image })).toBe(
      `${DEFAULT_DEVCONTAINER}, line 1, column 2: \`image\` must name an image in a registry, e.g. docker.io/library/node:24.`,
    );
  });
});

describe("the Dockerfile of a devcontainer.json", () => {
  const build = { dockerfile: "Dockerfile" };

  it("has paths relative to the file's directory", () => {
    const fields = { kind: "dockerfile", target: null, args: {} };
    expect(good({ build }).build).toEqual({
      ...fields,
      dockerfile: ".devcontainer/Dockerfile",
      context: ".devcontainer",
    });
    expect(good({ build: { dockerfile: "../docker/dev", context: ".." } }).build).toEqual({
      ...fields,
      dockerfile: "docker/dev",
      context: "",
    });
    expect(good({ build }, ".devcontainer.json").build).toEqual({
      ...fields,
      dockerfile: "Dockerfile",
      context: "",
    });
    expect(good({ build }, ".devcontainer/go/devcontainer.json").build).toMatchObject({
      dockerfile: ".devcontainer/go/Dockerfile",
    });
  });

  it("has a stage and arguments", () => {
    const args = { VERSION: "24", HOME: "${containerWorkspaceFolder}", MIRROR: "${localEnv:MIRROR:none}" };
    expect(good({ build: { ...build, target: "dev", args, cacheFrom: "x" } }).build).toMatchObject({
      target: "dev",
      args: { VERSION: "24", HOME: "/workspace", MIRROR: "none" },
    });
  });

  it("can be named as the format had it formerly", () => {
    const file = { dockerFile: "Dockerfile", context: "..", build: { target: "dev", args: { A: "1" } } };
    expect(good(file).build).toEqual({
      kind: "dockerfile",
      dockerfile: ".devcontainer/Dockerfile",
      context: "",
      target: "dev",
      args: { A: "1" },
    });
  });

  it.each([
    [{ build: { dockerfile: "../../Dockerfile" } }, "`build.dockerfile`: Give a path in the repository"],
    [{ build: { dockerfile: "/etc/passwd" } }, "`build.dockerfile`: Give a path in the repository"],
    [{ build: { dockerfile: "..\\Dockerfile" } }, "`build.dockerfile`: Give a path in the repository"],
    [
      { build: { dockerfile: "../.git/config", context: ".." } },
      "`build.dockerfile`: Give a path in the repository",
    ],
    [{ build: { ...build, context: "../../.." } }, "`build.context`: Give a path in the repository"],
    [{ build: { ...build, context: "/" } }, "`build.context`: Give a path in the repository"],
    [
      { build: { dockerfile: "../Dockerfile" } },
      "`build.context`: The Dockerfile Dockerfile is not in the context.",
    ],
    [{ dockerFile: "../../x" }, "`dockerFile`: Give a path in the repository"],
    [{ dockerFile: "x", context: "/" }, "`context`: Give a path in the repository"],
    [{ dockerFile: "x", build: { target: "a b" } }, "`build.target`: Give the name of a stage"],
    [{ build: { ...build, target: "--x" } }, "`build.target`: Give the name of a stage"],
    [{ build: { ...build, args: { "A-B": "1" } } }, "`build.args.A-B`: The name of an argument"],
    [{ build: { ...build, args: { A: 1 } } }, "`build.args.A` must be a text"],
    [{ build: { ...build, args: { A: "${localEnv:A}" } } }, "`build.args.A` refers to ${localEnv:A}"],
    [{ build: { ...build, args: [] } }, "`build.args` must be an object"],
    [{ build: { ...build, options: ["--privileged"] } }, "`build.options` is not supported"],
    [{ build: { dockerfile: 1 } }, "`build.dockerfile` must be a text"],
    [{ build: { dockerfile: "" } }, "`build.dockerfile` must be a text"],
    [{ build: { dockerfile: "${localEnv:F}" } }, "`build.dockerfile` refers to ${localEnv:F}"],
    [{ build: {} }, "`build` must name a Dockerfile"],
    [{ build: { context: "." } }, "`build` must name a Dockerfile"],
    [{ build: "Dockerfile" }, "`build` must be an object"],
    [{ ...IMAGE, build }, "`image` cannot be combined"],
    [{ ...IMAGE, dockerFile: "x" }, "`image` cannot be combined"],
    [{ build, dockerFile: "x" }, "`build.dockerfile` and `dockerFile` cannot be combined"],
    [{}, "names neither an `image` nor a Dockerfile"],
    [{ name: "x" }, "names neither an `image` nor a Dockerfile"],
    [{ image: 1 }, "`image` must be a text"],
    [{ image: "${devcontainerId}" }, "`image` refers to ${devcontainerId}"],
  ])("is refused with the reason: %j", (file, reason) => {
    expect(bad(file)).toContain(reason);
  });
});

describe("a field that would change the sandbox", () => {
  it.each([
    ["features", { "ghcr.io/devcontainers/features/go:1": {} }],
    ["dockerComposeFile", "compose.yml"],
    ["service", "app"],
    ["mounts", ["source=a,target=b,type=bind"]],
    ["workspaceMount", "source=a,target=b"],
    ["privileged", true],
    ["capAdd", ["SYS_PTRACE"]],
    ["securityOpt", ["seccomp=unconfined"]],
    ["runArgs", ["--network=host"]],
    ["initializeCommand", "make"],
  ])("is refused by name with its place, and says what to do: %s", (name, value) => {
    const text = JSON.stringify({ ...IMAGE, [name]: value }, null, 2);
    expect(bad(text)).toMatch(
      new RegExp(
        `^.devcontainer/devcontainer.json, line 3, column 3: \`${name}\` is not supported\\. .+\\.$`,
      ),
    );
  });

  it("is accepted if it wishes nothing", () => {
    const empty = {
      features: {},
      mounts: [],
      privileged: false,
      capAdd: [],
      runArgs: [],
      initializeCommand: "",
    };
    expect(good({ ...IMAGE, ...empty })).toEqual(good(IMAGE));
  });

  it("is refused before what is missing, so that a Compose file is named", () => {
    expect(bad({ dockerComposeFile: "compose.yml", service: "app" })).toContain("`dockerComposeFile`");
  });

  it("is a workspace folder other than /workspace", () => {
    for (const workspaceFolder of ["/workspace", "/workspace/", "${containerWorkspaceFolder}"])
      expect(good({ ...IMAGE, workspaceFolder })).toEqual(good(IMAGE));
    for (const workspaceFolder of [
      "/workspaces/app",
      "/workspace/app",
      "/",
      "/workspace/..",
      1,
      "${localEnv:X}",
    ])
      expect(bad({ ...IMAGE, workspaceFolder }), String(workspaceFolder)).toContain("can only be /workspace");
  });
});

describe("a field without an effect", () => {
  it("is named if a person may expect one", () => {
    const file = {
      remoteUser: "vscode",
      containerUser: "root",
      postAttachCommand: "echo",
      remoteEnv: { A: null },
    };
    expect(good({ ...IMAGE, ...file }).ignored).toEqual([
      "remoteUser",
      "containerUser",
      "postAttachCommand",
      "remoteEnv.A",
    ]);
  });

  it("is ignored silently if only an editor uses it, or nothing knows it", () => {
    const editor = {
      $schema: "https://example.org/schema.json",
      name: "Go",
      customizations: { vscode: { extensions: ["golang.go"], settings: { "a.b": null } } },
      forwardPorts: [3000, "db:5432"],
      portsAttributes: {},
      shutdownAction: "none",
      hostRequirements: { cpus: 4 },
      userEnvProbe: "loginShell",
      waitFor: "postCreateCommand",
      overrideCommand: true,
      constructor: 1,
      toString: 1,
      someThingNew: { a: 1 },
    };
    expect(good({ ...IMAGE, ...editor })).toEqual(good(IMAGE));
  });
});

it("has variables and commands", () => {
  const file = {
    ...IMAGE,
    containerEnv: { A: "a" },
    postCreateCommand: "npm ci",
    onCreateCommand: ["make", "deps"],
  };
  expect(good(file)).toMatchObject({
    variables: { A: "a" },
    commands: ["onCreateCommand", "postCreateCommand"],
    setup: expect.stringContaining("sh -c 'npm ci'") as string,
  });
  expect(bad({ ...IMAGE, containerEnv: { PATH: "x" } })).toContain("Set it with ENV in a Dockerfile.");
  expect(bad({ ...IMAGE, postCreateCommand: 1 })).toContain("`postCreateCommand` must be");
});

it("says the file, the line and the column of a mistake", () => {
  expect(bad('{\n  "image": "debian:13",\n  "features": {"go": {}},\n}', "a/devcontainer.json")).toMatch(
    /^a\/devcontainer\.json, line 3, column 3: `features`/,
  );
  expect(bad("[]")).toBe(
    ".devcontainer/devcontainer.json, line 1, column 1: The file must have one object, { … }.",
  );
  expect(bad(`{"image": "debian:13"}${" ".repeat(DEVCONTAINER_LIMIT_BYTES)}`)).toBe(
    ".devcontainer/devcontainer.json: The file is larger than 262144 bytes.",
  );
});

it("never makes the reader throw, whatever a field's value is", () => {
  const fields =
    "image build dockerFile context features mounts workspaceFolder containerEnv remoteEnv onCreateCommand postCreateCommand remoteUser initializeCommand other".split(
      " ",
    );
  const values = [
    null,
    true,
    false,
    0,
    -1e9,
    "",
    "x",
    "${",
    "é",
    [],
    [1],
    [[]],
    {},
    { a: 1 },
    { dockerfile: {} },
  ];
  const inBuild = ["dockerfile", "context", "target", "args", "options", "cacheFrom"];
  for (const value of values) {
    const files = [
      ...fields.map((name) => ({ ...IMAGE, [name]: value })),
      ...fields.map((name) => ({ [name]: value })),
      ...inBuild.map((name) => ({ build: { dockerfile: "x", [name]: value } })),
    ];
    for (const file of files)
      expect(bad(file) ?? DEFAULT_DEVCONTAINER, JSON.stringify(file)).toMatch(
        /^\.devcontainer\/devcontainer\.json/,
      );
  }
});
