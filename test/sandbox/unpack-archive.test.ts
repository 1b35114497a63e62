/** The limit of the bytes that an archive writes before its image is known. */
import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openArchive } from "../../src/sandbox/images/unpack/archive.ts";
import { tarOf } from "../support/machine/image-archives.ts";

let directory = "";
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "unpack-"))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("all parts of an archive count together, also those that the image does not name", async () => {
  const zeros = Buffer.alloc(300_000);
  const file = join(directory, "archive");
  writeFileSync(
    file,
    await tarOf([
      { name: "oci-layout", content: "{}" },
      { name: "index.json", content: '{"manifests":[]}' },
      ...["a", "b", "c"].map((name) => ({ name, content: zeros })),
    ]),
  );
  // An archive that breaks off closes its descriptor.
  const open = (bytes: number) =>
    openArchive(openSync(file, "r"), { directory: mkdtempSync(join(directory, "scratch-")), bytes });
  await expect(open(800_000)).rejects.toThrow("the archive's parts have more than 800000 bytes");
  await expect(open(1_000_000)).rejects.toThrow("the archive has no image for linux");
});
