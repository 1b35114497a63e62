import { expect, it } from "vitest";
import { installedAt, parseNamedVersion } from "../../../src/domain/runtimes/installed.ts";
import { PACKAGED } from "../../../src/domain/runtimes/runtimes.ts";

it.each(["gemini@0.61.0", "claude-code@2.1.332", "codex@0.171.0-alpha.1"])("reads %s", (text) => {
  const [name, version] = text.split("@");
  expect(parseNamedVersion(text)).toEqual({ name, version });
});

it.each([
  "gemini",
  "gemini@",
  "gemini@latest",
  "gemini@^1.0.0",
  "gemini@1.0.0/../..",
  "Gemini@1.0.0",
  "@1.0.0",
])("takes no %s: a version is exact, and becomes a directory", (text) => {
  expect(parseNamedVersion(text)).toBeNull();
});

it.each([...PACKAGED])("starts %s by the platform's own Node, from files of its packages", (_, packaged) => {
  const place = "/opt/platform/runtimes/one/1.0.0";
  const { command, variables } = installedAt(packaged, {
    place,
    node: "/node",
    arch: "arm64",
    files: "/files",
  });
  expect(command[command.indexOf("/node") + 1]).toMatch(
    /^\/opt\/platform\/runtimes\/one\/1\.0\.0\/(own|beside)\/node_modules\/.+\.js$/,
  );
  for (const text of [...command, ...Object.values(variables)]) expect(text).not.toMatch(/\{[a-z]+\}/);
});
