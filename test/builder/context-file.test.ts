/** The Dockerfile of a request, as the builder's version can read it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, it } from "vitest";
import { parseBuildahVersion, readsHereDocuments } from "../../src/builder/buildah-version.ts";
import { readDockerfile } from "../../src/builder/context-file.ts";

const directories: string[] = [];
afterEach(() => directories.splice(0).forEach((directory) => rmSync(directory, { recursive: true })));

const OLD = parseBuildahVersion("buildah version 1.28.2 (of a package)\n");
const NEW = parseBuildahVersion("buildah version 1.35.0 (of a package)");

const read = (source: string, version: typeof OLD) => {
  const contextDirectory = mkdtempSync(path.join(tmpdir(), "dockerfile-"));
  directories.push(contextDirectory);
  writeFileSync(path.join(contextDirectory, "Dockerfile"), source);
  return readDockerfile({ contextDirectory, dockerfile: "Dockerfile" }, { version });
};

const HERE = "FROM scratch\n\nRUN <<EOF\nset -e\nEOF\nCOPY <<X /x\nFROM nothing\nX\n";

it("is refused at the line of a here-document that this buildah does not read, with the remedy", async () => {
  await expect(read(HERE, OLD)).rejects.toMatchObject({
    failure: {
      code: "syntax",
      line: 3,
      problem: expect.stringContaining("here-documents need buildah 1.35 or newer, and this node has 1.28.2"),
    },
  });
  for (const version of [NEW, null]) expect((await read(HERE, version)).stages).toHaveLength(1);
  expect((await read("FROM scratch\nCOPY a b\n", OLD)).stages).toHaveLength(1);
});

it.each([
  ["buildah version 1.34.3 (x)", false],
  ["buildah version 1.35.0-dev (x)", true],
  ["buildah version 2.0.0", true],
  ["1.40", null],
])("the version %j reads here-documents: %s", (output, reads) => {
  const version = parseBuildahVersion(output);
  expect(version === null ? null : readsHereDocuments(version)).toBe(reads);
});
