/** Agent runtimes that an operator has added to this machine. A runtime's name stands for one version: the one that new sandboxes get. */
import * as Schema from "effect/Schema";
import { Digest, type NamedTree, type Tree, TreeStore } from "../machine/disk/tree-store.ts";

const RuntimeFacts = Schema.Struct({
  /** Of the names, versions and checksums of all its packages, or of its archive, and of `start`. */
  digest: Digest,
  /** Of the package that the runtime's record names, or of its entry. */
  version: Schema.String,
  /** The checksum of that package or of the archive: `sha512-…`. */
  integrity: Schema.String,
  packages: Schema.Int,
  /** The size of its files, in bytes. */
  bytes: Schema.Int,
  /** What starts it, with the holes of `installedAt`. Absent: its record says that. */
  start: Schema.optionalKey(
    Schema.Struct({
      command: Schema.Array(Schema.String),
      variables: Schema.Record(Schema.String, Schema.String),
    }),
  ),
});
export type RuntimeFacts = typeof RuntimeFacts.Type;
export type InstalledRuntime = Tree<RuntimeFacts>;
export type NamedRuntime = NamedTree<RuntimeFacts>;

export class RuntimeStore extends TreeStore<RuntimeFacts> {
  constructor(directory: string) {
    super(directory, {
      what: "agent runtimes",
      factsFile: "runtime.json",
      decode: Schema.decodeUnknownSync(Schema.fromJsonString(RuntimeFacts)),
    });
  }
}
