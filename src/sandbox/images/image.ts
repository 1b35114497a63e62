/** An image on this machine's disk, and what it says about its programs. */
import * as Schema from "effect/Schema";
import { Digest, type NamedTree, type Tree } from "../machine/disk/tree-store.ts";

/** The content of `image.json`, beside an image's root. */
export const ImageFacts = Schema.Struct({
  /** `sha256:…` of the image's manifest, of its configuration in archives without one, or of a plain tar. */
  digest: Digest,
  /** Variables that the image sets for every program. */
  env: Schema.Record(Schema.String, Schema.String),
  /** The user that the image names. `local` ignores it: every agent has the same user. */
  user: Schema.String,
  workdir: Schema.String,
  /** The size of its files, in bytes. */
  bytes: Schema.Int,
  /** Files, directories and links. */
  files: Schema.Int,
});
export type ImageFacts = typeof ImageFacts.Type;

/** An image that is ready for sandboxes. Its `root` has its file system. */
export type Image = Tree<ImageFacts>;
export type NamedImage = NamedTree<ImageFacts>;
