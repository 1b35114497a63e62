import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { readEntry } from "../../../src/domain/runtimes/registry.ts";

const ARCHIVE = { archive: "https://example.org/heron.tar.gz", cmd: "./bin/heron" };
const NPX = { package: "@birds/heron@1.2.3" };

const registry = (distribution: object, more: object = {}) =>
  JSON.stringify({ version: "1.0.0", agents: [{ id: "heron", version: "1.2.3", distribution, ...more }] });

const read = (text: string, { id = "heron", version = null as string | null, arch = "x64" } = {}) =>
  Result.match(readEntry(text, { id, version, arch }), {
    onSuccess: (entry) => entry,
    onFailure: (why) => why,
  });

it("reads an archive for this machine, with its program, arguments, variables and checksum", () => {
  const sha256 = "a".repeat(64);
  const binary = {
    "linux-x86_64": { ...ARCHIVE, sha256, args: ["acp"], env: { HERON_QUIET: "1" } },
    "linux-aarch64": { ...ARCHIVE, cmd: "heron" },
  };
  expect(read(registry({ binary }))).toEqual({
    id: "heron",
    version: "1.2.3",
    source: {
      kind: "archive",
      url: new URL(ARCHIVE.archive),
      checksum: `sha256:${sha256}`,
      program: "bin/heron",
      args: ["acp"],
      variables: { HERON_QUIET: "1" },
    },
  });
  expect(read(registry({ binary }), { arch: "arm64" })).toMatchObject({
    source: { program: "heron", checksum: null },
  });
});

it("takes the package of npm where there is one, whatever else there is", () => {
  const distribution = { npx: { ...NPX, args: ["--acp"] }, binary: { "linux-x86_64": ARCHIVE } };
  expect(read(registry(distribution), { version: "1.2.3" })).toMatchObject({
    source: { kind: "package", name: "@birds/heron", version: "1.2.3", program: null, args: ["--acp"] },
  });
});

it("reads a registry after a byte order mark, and a checksum in capital letters", () => {
  const binary = { "linux-x86_64": { ...ARCHIVE, sha256: "A".repeat(64) } };
  expect(read(`\uFEFF${registry({ binary })}`)).toMatchObject({
    source: { checksum: `sha256:${"a".repeat(64)}` },
  });
});

it("does not mind other entries of another form", () => {
  const text = JSON.stringify({
    agents: [null, { id: "crane" }, { id: "heron", version: "1.2.3", distribution: { npx: NPX } }],
  });
  expect(read(text)).toMatchObject({ id: "heron" });
});

const BINARY = (target: object) => registry({ binary: { "linux-x86_64": { ...ARCHIVE, ...target } } });
it.each<[string, string, string, Parameters<typeof read>[1]]>([
  ["an unknown id", registry({ npx: NPX }), "It has no agent hern. Did you mean heron?", { id: "hern" }],
  ["another version", registry({ npx: NPX }), "It has heron 1.2.3, not 1.2.4.", { version: "1.2.4" }],
  [
    "a version that is no directory",
    registry({ npx: NPX }, { version: "1.2.3/../.." }),
    "no name and exact version",
    {},
  ],
  [
    "an entry for other machines",
    registry({ binary: { "darwin-aarch64": ARCHIVE, "windows-x86_64": ARCHIVE } }),
    "heron 1.2.3 cannot be added. It is for other machines: darwin-aarch64, windows-x86_64. This machine is linux-x86_64.",
    {},
  ],
  ["packages of Python", registry({ uvx: { package: "heron" } }), "packages of Python only (uvx)", {}],
  [
    "a package without a version",
    registry({ npx: { package: "@birds/heron" } }),
    "names no exact version",
    {},
  ],
  [
    "a package that is an option",
    registry({ npx: { package: "--evil@1.0.0" } }),
    "Its package --evil@1.0.0 has no name of npm.",
    {},
  ],
  ["a package that is a file", registry({ npx: { package: ".evil@1.0.0" } }), "no name of npm", {}],
  ["a package above", registry({ npx: { package: "../evil@1.0.0" } }), "no name of npm", {}],
  ["a package of an address", registry({ npx: { package: "http://a/b.tgz@1.0.0" } }), "no name of npm", {}],
  ["an archive in a file", BINARY({ archive: "file:///x" }), "file:///x is no address of an archive", {}],
  ["a package with a range", registry({ npx: { package: "heron@^1.2.3" } }), "names no exact version", {}],
  ["a program outside", BINARY({ cmd: "../heron" }), "is not a file of its archive", {}],
  ["a program of the machine", BINARY({ cmd: "/bin/sh" }), "is not a file of its archive", {}],
  ["no checksum", BINARY({ sha256: "abc" }), "no checksum in 64 hexadecimal digits", {}],
  [
    "a variable of the platform",
    BINARY({ env: { PLATFORM_TOKEN: "x" } }),
    "It sets the variable PLATFORM_TOKEN",
    {},
  ],
  ["a variable that loads code", BINARY({ env: { LD_PRELOAD: "x" } }), "It sets the variable LD_PRELOAD", {}],
  ["another form", registry({}, { distribution: "npm" }), "does not have the registry's form", {}],
  ["no registry", "<html>", "It is no registry of agents", {}],
  ["a runtime with a record", registry({ npx: NPX }, { id: "gemini" }), "knows by itself", { id: "gemini" }],
])("refuses %s, with the reason", (_, text, why, wish) => {
  expect(read(text, wish)).toContain(why);
});
