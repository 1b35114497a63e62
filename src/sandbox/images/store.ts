/** Images on this machine: unpacked once, and used read-only by any number of sandboxes. */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as Schema from "effect/Schema";
import { TreeStore } from "../machine/disk/tree-store.ts";
import { ImageFacts } from "./image.ts";

/** Of a former release: digests by name, in one file. */
const decodeNames = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
);
const FORMER_NAMES = "names.json";

export class ImageStore extends TreeStore<ImageFacts> {
  constructor(directory: string) {
    super(directory, {
      what: "images",
      factsFile: "image.json",
      decode: Schema.decodeUnknownSync(Schema.fromJsonString(ImageFacts)),
    });
  }

  /** A former release kept all names in one file. */
  protected override async adopt(): Promise<void> {
    const former = join(this.directory, FORMER_NAMES);
    const text = await readFile(former, "utf8").catch(() => null);
    if (text === null) return;
    for (const [name, digest] of Object.entries(decodeNames(text))) {
      // eslint-disable-next-line no-await-in-loop -- once, after an upgrade
      if ((await this.readName(this.namePath(name))) === null) await this.setName(name, digest);
    }
    await rm(former, { force: true });
  }
}
