import { expect, it } from "vitest";
import { isImageDigest, taggedReference } from "../../../src/domain/environment/registry-reference.ts";

it.each([
  ["debian", "docker.io/library/debian:latest", "registry-1.docker.io", "library/debian", "latest"],
  ["team/tools:1", "docker.io/team/tools:1", "registry-1.docker.io", "team/tools", "1"],
  ["images.example.com/a/b:1.2", "images.example.com/a/b:1.2", "images.example.com", "a/b", "1.2"],
  ["localhost:5000/a", "localhost:5000/a:latest", "localhost:5000", "a", "latest"],
])("reads the tag of %s", (given, text, host, repository, tag) => {
  expect(taggedReference(given)).toEqual({ text, host, repository, tag });
});

it.each(["", "Upper/Case", "a b", "a:b:c", "../a", "a@sha256:12", `a:1@sha256:${"0".repeat(64)}`])(
  "finds no tag in %j",
  (given) => {
    expect(taggedReference(given)).toBeNull();
  },
);

it("knows a digest", () => {
  expect(isImageDigest(`sha256:${"0".repeat(64)}`)).toBe(true);
  for (const text of ["", "sha256:0", `sha256:${"G".repeat(64)}`, `${"0".repeat(71)}\n`])
    expect(isImageDigest(text)).toBe(false);
});
