import * as Result from "effect/Result";
import { describe, expect, test } from "vitest";
import {
  buildKey,
  DEFAULT_ENVIRONMENT,
  readEnvironment,
  readSetup,
} from "../../../src/domain/environment/environment-source.ts";

const read = (table: unknown) => Result.getOrThrow(readEnvironment(table));
const faultOf = (table: unknown) => Result.getFailure(readEnvironment(table)).valueOrUndefined?.[0];

describe("[environment]", () => {
  test("is the default Dockerfile, if it exists, without the table and with an empty one", () => {
    expect(read(undefined)).toBe(DEFAULT_ENVIRONMENT);
    expect(read({})).toEqual(DEFAULT_ENVIRONMENT);
  });

  test("names a Dockerfile, whose directory is the context", () => {
    expect(read({ dockerfile: "./tools//agent.Dockerfile" })).toEqual({
      kind: "dockerfile",
      isNamed: true,
      dockerfile: "tools/agent.Dockerfile",
      context: "tools",
      target: null,
      args: {},
    });
    expect(read({ dockerfile: "Dockerfile" })).toMatchObject({ context: "" });
  });

  test("names secrets for the build, each once, and their names are part of the key", () => {
    expect(read({ secrets: ["NPM_TOKEN", "A_KEY", "NPM_TOKEN"] })).toMatchObject({
      kind: "dockerfile",
      isNamed: true,
      secrets: ["A_KEY", "NPM_TOKEN"],
    });
    expect(read({ secrets: [] })).not.toHaveProperty("secrets");
    const source = { dockerfile: "a", context: "", target: null, args: {} };
    const objects = { dockerfile: "1", context: "2" };
    const keys = [undefined, ["A_KEY"], ["NPM_TOKEN"]].map((secrets) =>
      buildKey({ ...source, ...(secrets && { secrets }) }, objects),
    );
    expect(new Set(keys).size).toBe(3);
  });

  test("may have a setup command, which is not part of the image", () => {
    expect(read({ setup: "npm ci" })).toEqual(DEFAULT_ENVIRONMENT);
    expect(read({ image: "tools", setup: "npm ci" })).toEqual({ kind: "image", image: "tools" });
    expect(readSetup({ setup: "npm ci\nnpm run build\n" })).toEqual(
      Result.succeed("npm ci\nnpm run build\n"),
    );
    expect(readSetup({ image: "tools" })).toEqual(Result.succeed(null));
    expect(readSetup(undefined)).toEqual(Result.succeed(null));
    for (const setup of ["", " \n", 1, ["npm", "ci"], "a\0b", "x".repeat(8193)])
      expect(Result.getFailure(readSetup({ setup })).valueOrUndefined?.[0]).toMatchObject({
        path: "environment.setup",
      });
  });

  test("names a devcontainer.json, and the secrets of its build", () => {
    const path = ".devcontainer/devcontainer.json";
    expect(read({ devcontainer: `./${path}` })).toEqual({ kind: "devcontainer", path });
    expect(read({ devcontainer: path, setup: "npm ci", secrets: ["A_KEY"] })).toEqual({
      kind: "devcontainer",
      path,
      secrets: ["A_KEY"],
    });
  });

  test("names context, stage and arguments", () => {
    expect(read({ context: ".", target: "dev", args: { VERSION: "3" } })).toEqual({
      kind: "dockerfile",
      isNamed: true,
      dockerfile: ".platform/Dockerfile",
      context: "",
      target: "dev",
      args: { VERSION: "3" },
    });
  });

  test.each([
    [1, "environment"],
    [[], "environment"],
    [{ image: 1 }, "environment.image"],
    [{ image: "x", dockerfile: "y" }, "environment.dockerfile"],
    [{ docker: "x" }, "environment.docker"],
    [{ devcontainer: 1 }, "environment.devcontainer"],
    [{ devcontainer: true }, "environment.devcontainer"],
    [{ devcontainer: "" }, "environment.devcontainer"],
    [{ devcontainer: "../devcontainer.json" }, "environment.devcontainer"],
    [{ devcontainer: "/etc/passwd" }, "environment.devcontainer"],
    [{ devcontainer: "x", secrets: ["a b"] }, "environment.secrets[0]"],
    [{ devcontainer: "x", dockerfile: "y" }, "environment.dockerfile"],
    [{ devcontainer: "x", target: "y" }, "environment.target"],
    [{ devcontainer: "x", image: "y" }, "environment.devcontainer"],
    [{ dockerfile: 1 }, "environment.dockerfile"],
    [{ dockerfile: "" }, "environment.dockerfile"],
    [{ dockerfile: "." }, "environment.dockerfile"],
    [{ dockerfile: "/etc/passwd" }, "environment.dockerfile"],
    [{ dockerfile: "a/../../b" }, "environment.dockerfile"],
    [{ dockerfile: "a/.GIT/config" }, "environment.dockerfile"],
    [{ dockerfile: "a\0b" }, "environment.dockerfile"],
    [{ dockerfile: "a\\b" }, "environment.dockerfile"],
    [{ dockerfile: "a".repeat(1025) }, "environment.dockerfile"],
    [{ context: "../x" }, "environment.context"],
    [{ context: "app" }, "environment.context"],
    [{ dockerfile: "app2/Dockerfile", context: "app" }, "environment.context"],
    [{ target: "" }, "environment.target"],
    [{ target: "a b" }, "environment.target"],
    [{ target: 3 }, "environment.target"],
    [{ args: [] }, "environment.args"],
    [{ secrets: "NPM_TOKEN" }, "environment.secrets"],
    [{ secrets: Array.from({ length: 21 }, (_, index) => `S${index}`) }, "environment.secrets"],
    [{ secrets: ["A", 1] }, "environment.secrets[1]"],
    [{ secrets: ["a b"] }, "environment.secrets[0]"],
    [{ secrets: ["PLATFORM_TOKEN"] }, "environment.secrets[0]"],
    [{ image: "x", secrets: ["A"] }, "environment.secrets"],
    [{ args: { "a b": "" } }, "environment.args.a b"],
    [{ args: { A: 1 } }, "environment.args.A"],
    [{ args: { A: "x".repeat(40_000) } }, "environment.args"],
    [
      { args: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`A${at}`, ""])) },
      "environment.args",
    ],
  ])("a wrong value is refused with its path: %j", (table, path) => {
    expect(faultOf(table)).toMatchObject({ path });
    expect(faultOf(table)?.message).toMatch(/\.$/);
  });
});

describe("the key of a build", () => {
  const source = { dockerfile: "a/Dockerfile", context: "a", target: null, args: { A: "1", B: "2" } };
  const objects = { dockerfile: "d1", context: "c1" };
  const key = buildKey(source, objects);

  test("has 64 hexadecimal digits, and does not depend on the order of arguments", () => {
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(buildKey({ ...source, args: { B: "2", A: "1" } }, objects)).toBe(key);
  });

  test.each([
    ["the Dockerfile's content", source, { ...objects, dockerfile: "d2" }],
    ["a file of the context", source, { ...objects, context: "c2" }],
    ["the Dockerfile's path", { ...source, dockerfile: "a/b" }, objects],
    ["the context's path", { ...source, context: "" }, objects],
    ["the stage", { ...source, target: "dev" }, objects],
    ["an argument", { ...source, args: { A: "1", B: "3" } }, objects],
    ["an argument's name", { ...source, args: { A: "1", C: "2" } }, objects],
  ])("changes with %s", (_, other, ids) => {
    expect(buildKey(other, ids)).not.toBe(key);
  });

  test("of a Dockerfile is the one that earlier versions of the service computed", () => {
    expect([key, buildKey({ ...source, secrets: ["S"] }, objects)]).toEqual([
      "16bcdd7cc72af48931746a0035e6788274c0bd58f26317a4a93e571887c9160b",
      "01b59c296ccea2bd286363cba32742f7b2a7e7a6b236ed53c466a13001e75d95",
    ]);
  });

  const said = { path: "p", image: null, variables: {}, commands: [], setup: null, ignored: [] };

  test("covers only the image or the Dockerfile that a devcontainer.json names", () => {
    const other = { path: "q", variables: { A: "1" }, commands: ["c"], setup: "true", ignored: ["x"] };
    expect(buildKey({ ...source, devcontainer: said }, objects)).toBe(key);
    expect(buildKey({ ...source, devcontainer: { ...said, ...other } }, objects)).toBe(key);
    const none = { dockerfile: null, context: null };
    const ofImage = (image: string, rest = {}) =>
      buildKey({ ...source, ...rest, devcontainer: { ...said, image } }, none);
    const image = ofImage("debian:13");
    expect(ofImage("debian:13", { dockerfile: "other", context: "", args: {} })).toBe(image);
    expect(new Set([key, image, ofImage("debian:12"), ofImage("debian:13", { secrets: ["A"] })]).size).toBe(
      4,
    );
  });
});
