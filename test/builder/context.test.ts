/** The context of a build, written from pages of files, honest and hostile. */
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type ContextLimits, writeContext } from "../../src/builder/site/context.ts";
import { BuildError } from "../../src/builder/port.ts";
import type { TreeFile, TreePage } from "../../src/git/port.ts";

let home: string;
let directory: string;
beforeEach(async () => {
  home = mkdtempSync(path.join(tmpdir(), "context-"));
  directory = path.join(home, "context");
  await mkdir(directory);
  await mkdir(path.join(home, "canary"));
  await writeFile(path.join(home, "canary", "file"), "untouched");
});
afterEach(() => rmSync(home, { recursive: true }));

const file = (name: string, text: string, kind: TreeFile["kind"] = "file"): TreeFile => ({
  path: name,
  kind,
  size: Buffer.byteLength(text),
  content: Buffer.from(text),
});

/** Writes pages of these files, each with `size` of them. */
const write = (files: readonly TreeFile[], limits: Partial<ContextLimits> = {}, size = 2) => {
  const pageAfter = (after: string | null): Effect.Effect<TreePage> => {
    const from = after === null ? 0 : files.findIndex(({ path: name }) => name === after) + 1;
    const entries = files.slice(from, from + size);
    const isLast = from + size >= files.length;
    return Effect.succeed({ entries, next: isLast ? null : (entries.at(-1)?.path ?? null) });
  };
  return Effect.runPromise(writeContext(directory, pageAfter, { bytes: 1000, files: 100, ...limits }));
};
const failureOf = (files: readonly TreeFile[], limits: Partial<ContextLimits> = {}) =>
  write(files, limits).then(
    () => null,
    (error: unknown) => (error instanceof BuildError ? error.failure : error),
  );
const canaryIsUntouched = () => {
  expect(readdirSync(path.join(home, "canary"))).toEqual(["file"]);
  expect(readFileSync(path.join(home, "canary", "file"), "utf8")).toBe("untouched");
};

it("writes files, programs and links of all pages, with one time and git's two modes", async () => {
  await write([
    file("Dockerfile", "FROM scratch\n"),
    file("a/b/deep", "deep"),
    file("a/run", "#!/bin/sh\n", "executable"),
    file("link", "a/run", "link"),
    file("out", "../canary/file", "link"),
    file("z", ""),
  ]);
  expect(readdirSync(directory, { recursive: true }).toSorted()).toEqual(
    ["Dockerfile", "a", "a/b", "a/b/deep", "a/run", "link", "out", "z"].toSorted(),
  );
  expect(readFileSync(path.join(directory, "a/b/deep"), "utf8")).toBe("deep");
  expect(readlinkSync(path.join(directory, "out"))).toBe("../canary/file");
  const found = ["Dockerfile", "a/run", "a", "a/b", "link", "."].map((name) => {
    const { mode, mtimeMs } = lstatSync(path.join(directory, name));
    return [name, name === "link" || name === "." ? null : (mode & 0o777).toString(8), mtimeMs];
  });
  const time = Date.parse("2000-01-01T00:00:00Z");
  expect(found).toEqual([
    ["Dockerfile", "644", time],
    ["a/run", "755", time],
    ["a", "755", time],
    ["a/b", "755", time],
    ["link", null, time],
    [".", null, time],
  ]);
});

it.each<readonly [string, readonly TreeFile[]]>([
  ["through a link", [file("x", "../canary", "link"), file("x/file", "written")]],
  ["through a link that comes later", [file("x/file", "in"), file("x", "../canary", "link")]],
  ["over a link", [file("x", "../canary/file", "link"), file("x", "written")]],
  ["below a file", [file("x", "a file"), file("x/y", "written")]],
  ["twice", [file("x", "one"), file("x", "two")]],
  ["above the directory", [file("../canary/file", "written")]],
  ["at an absolute path", [file("/tmp/written", "written")]],
  ["at a path with a zero byte", [file("a\0b", "written")]],
  ["at the directory itself", [file(".", "written")]],
])("writes nothing %s [E11]", async (_, files) => {
  expect(await failureOf(files)).toMatchObject({ code: "repository_unavailable" });
  canaryIsUntouched();
});

it("ends at its limits, each with its number", async () => {
  expect(await failureOf([file("a", "12345"), file("b", "123456")], { bytes: 10 })).toEqual({
    code: "too_large",
    what: "disk",
    limit: 10,
  });
  expect(await failureOf([file("d/e/f", ""), file("g", "")], { files: 3 })).toEqual({
    code: "too_large",
    what: "files",
    limit: 3,
  });
  expect(await failureOf([file("n".repeat(300), "")])).toMatchObject({ code: "too_large", what: "path" });
});
