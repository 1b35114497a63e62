import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { readVariables, resolveReferences } from "../../../src/domain/environment/devcontainer-variables.ts";
import { parseJsonc } from "../../../src/domain/environment/jsonc.ts";

const read = (file: object) =>
  readVariables(Result.getOrThrow(parseJsonc(Buffer.from(JSON.stringify(file)))));

describe("a reference in devcontainer.json", () => {
  it.each([
    ["${localWorkspaceFolder}/a ${containerWorkspaceFolder}", "/workspace/a /workspace"],
    ["${localWorkspaceFolderBasename}-${containerWorkspaceFolderBasename}", "workspace-workspace"],
    // The default counts, because a sandbox has no variables of a person's computer.
    ["${localEnv:MIRROR:https://x.example}", "https://x.example"],
    ["${env:LEVEL:}", ""],
    // What a shell reads.
    ["${HOME} $HOME ${A:-b} $(pwd) ${", "${HOME} $HOME ${A:-b} $(pwd) ${"],
  ])("has its value: %s", (text, value) => {
    expect(resolveReferences(text)).toEqual(Result.succeed(value));
  });

  it.each([
    "${localEnv:HOME}",
    "${env:HOME}",
    "${containerEnv:PATH}",
    "${containerEnv:A:b}",
    "${devcontainerId}",
  ])("has no value in a sandbox: %s", (reference) => {
    expect(resolveReferences(`a ${reference} \${localEnv:X}`)).toEqual(Result.fail(reference));
  });
});

describe("the variables of devcontainer.json", () => {
  it("are those of containerEnv and remoteEnv, which overrides", () => {
    const containerEnv = { A: "1", B: "${containerWorkspaceFolder}/b", lower_case: "", C: "c" };
    expect(read({ containerEnv, remoteEnv: { A: "2", C: null } })).toEqual(
      Result.succeed({ variables: { A: "2", B: "/workspace/b", lower_case: "" }, ignored: [] }),
    );
    expect(read({})).toEqual(Result.succeed({ variables: {}, ignored: [] }));
    expect(read({ containerEnv: null })).toEqual(Result.succeed({ variables: {}, ignored: [] }));
  });

  it("leave out and name what has no value in a sandbox", () => {
    expect(
      read({
        containerEnv: { KEY: "${localEnv:KEY}", A: "a" },
        remoteEnv: { X: null, Y: "${containerEnv:A}" },
      }),
    ).toEqual(
      Result.succeed({
        variables: { A: "a" },
        ignored: ["containerEnv.KEY", "remoteEnv.X", "remoteEnv.Y"],
      }),
    );
  });

  it("cannot have a name that the sandbox or its programs use [E16]", () => {
    for (const name of [
      "PATH",
      "path",
      "LD_PRELOAD",
      "Ld_Preload",
      "NODE_OPTIONS",
      "HTTP_PROXY",
      "https_proxy",
    ])
      expect(Result.getFailure(read({ containerEnv: { [name]: "x" } })).valueOrUndefined?.reason).toContain(
        `\`containerEnv\` cannot set ${name}`,
      );
    for (const name of ["PLATFORM_TOKEN", "platform_x", "GIT_DIR", "HOME", "BASH_ENV"])
      expect(Result.getFailure(read({ remoteEnv: { [name]: "x" } })).valueOrUndefined?.reason).toContain(
        `\`remoteEnv\` cannot set ${name}`,
      );
  });

  it.each([
    [{ containerEnv: [] }, "must be an object of texts"],
    [{ remoteEnv: "A=1" }, "must be an object of texts"],
    [{ containerEnv: { A: 1 } }, "The value of A in `containerEnv` must be a text"],
    [{ containerEnv: { A: null } }, "The value of A in `containerEnv` must be a text"],
    [{ containerEnv: { A: "a\0b" } }, "The value of A in `containerEnv` must be a text"],
    [{ containerEnv: { "A B": "" } }, "name is not usable"],
    [{ containerEnv: { "": "" } }, "name is not usable"],
    [{ containerEnv: { "1A": "" } }, "name is not usable"],
    [{ containerEnv: { ["A".repeat(129)]: "" } }, "name is not usable"],
    [{ containerEnv: { A: "a".repeat(32 * 1024) } }, "too many variables"],
    [
      { containerEnv: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`V${n}`, ""])) },
      "too many variables",
    ],
  ])("are refused with the reason: %j", (file, reason) => {
    expect(Result.getFailure(read(file)).valueOrUndefined?.reason).toContain(reason);
  });
});
