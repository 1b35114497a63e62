/** The twin's trees: the object ids that git would give them, and their files page by page. */
import * as Effect from "effect/Effect";
import { createHash } from "node:crypto";
import {
  GitError,
  isRootPath,
  isTreePath,
  type PathList,
  TREE_PAGE_FILES,
  type TreeFile,
  type TreePage,
  type TreeRequest,
} from "../../../src/git/port.ts";
import type { SimulatedEntry } from "./repositories.ts";

/** Null for a link, a submodule, or a missing entry. */
export const textOf = (entry: SimulatedEntry | undefined): string | null => {
  if (typeof entry === "string") return entry;
  return entry !== undefined && "executable" in entry ? entry.executable : null;
};

/** Of a file, without empty ones. */
export const linesOf = (entry: SimulatedEntry | undefined): string[] =>
  (textOf(entry) ?? "").split("\n").filter((line) => line !== "");

type Files = ReadonlyMap<string, SimulatedEntry>;
interface Tree {
  readonly files: Files;
}

export const same = (a: SimulatedEntry | undefined, b: SimulatedEntry | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** Paths that differ, in their order. */
export const changedPaths = (from: Files, to: Files): string[] =>
  [...new Set([...from.keys(), ...to.keys()])]
    .filter((path) => !same(from.get(path), to.get(path)))
    .toSorted();

/** The files of a merge without conflicts. */
export const mergedFiles = (mergeBase: Tree, base: Tree, head: Tree): Files => {
  const files = new Map(base.files);
  for (const path of changedPaths(mergeBase.files, head.files)) {
    const entry = head.files.get(path);
    if (entry === undefined) files.delete(path);
    else files.set(path, entry);
  }
  return files;
};

const hashOf = (type: "blob" | "tree", content: Buffer): string =>
  createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");

interface Blob {
  readonly mode: string;
  readonly kind: TreeFile["kind"];
  readonly content: Buffer;
}

/** Null for a submodule. */
const blobOf = (entry: SimulatedEntry): Blob | null => {
  if (typeof entry === "string") return { mode: "100644", kind: "file", content: Buffer.from(entry) };
  if ("executable" in entry)
    return { mode: "100755", kind: "executable", content: Buffer.from(entry.executable) };
  return "symlink" in entry ? { mode: "120000", kind: "link", content: Buffer.from(entry.symlink) } : null;
};

/** The files below a directory, by their paths in it. */
const below = (files: Files, directory: string): Files =>
  isRootPath(directory)
    ? files
    : new Map(
        [...files]
          .filter(([path]) => path.startsWith(`${directory}/`))
          .map(([path, entry]) => [path.slice(directory.length + 1), entry]),
      );

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

const treeId = (files: Files): string => {
  const names = [...new Set([...files.keys()].map((path) => path.split("/")[0] ?? ""))];
  const entries = names.map((name) => {
    const entry = files.get(name);
    if (entry === undefined) return { name, key: `${name}/`, mode: "40000", id: treeId(below(files, name)) };
    const blob = blobOf(entry);
    if (blob !== null) return { name, key: name, mode: blob.mode, id: hashOf("blob", blob.content) };
    const id = typeof entry === "object" && "submodule" in entry ? entry.submodule : "";
    return { name, key: name, mode: "160000", id };
  });
  const rows = entries
    .toSorted((a, b) => byBytes(a.key, b.key)) // git sorts a directory as if its name ended with a slash
    .map(({ mode, name, id }) => Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")]));
  return hashOf("tree", Buffer.concat(rows));
};

/** The files but for one. A submodule stays. */
export const withoutFile = (files: Files, path: string | undefined): Files => {
  const entry = path === undefined ? undefined : files.get(path);
  if (entry === undefined || blobOf(entry) === null) return files;
  return new Map([...files].filter(([name]) => name !== path));
};

/** The id of the blob or tree at a path. Null if the path has neither. */
export const objectId = (files: Files, path: string): string | null => {
  if (isRootPath(path)) return treeId(files);
  if (!isTreePath(path)) return null;
  const entry = files.get(path);
  if (entry !== undefined) {
    const blob = blobOf(entry);
    return blob && hashOf("blob", blob.content);
  }
  const inside = below(files, path);
  return inside.size === 0 ? null : treeId(inside);
};

/** The paths of the files, and how many there are. */
export const listPaths = (files: Files, limit: number): PathList => {
  const paths = [...files].flatMap(([path, entry]) => (blobOf(entry) === null ? [] : [path]));
  return { paths: paths.toSorted(byBytes).slice(0, limit), total: paths.length };
};

/** A page of the files below a directory. Null if the path is not a directory. */
export const readTree = (
  files: Files,
  { path, after, maxBytes }: TreeRequest,
): Effect.Effect<TreePage | null, GitError> => {
  const inside = isRootPath(path) || isTreePath(path) ? below(files, path) : new Map<string, never>();
  if (inside.size === 0 && !isRootPath(path)) return Effect.succeed(null);
  const left = [...inside]
    .filter(([name]) => after === null || byBytes(name, after) > 0)
    .toSorted(([a], [b]) => byBytes(a, b))
    .flatMap(([name, entry]): TreeFile[] => {
      const blob = blobOf(entry);
      if (blob === null) return [];
      const content = new Uint8Array(blob.content);
      return [{ path: name, kind: blob.kind, size: content.length, content }];
    });
  let bytes = 0;
  const end = left.findIndex(({ size }, index) => {
    bytes += size;
    return bytes > maxBytes || index === TREE_PAGE_FILES;
  });
  const [first] = left;
  if (end === 0 && first !== undefined) {
    const message = `${first.path} has ${first.size} bytes. The limit is ${maxBytes} bytes.`;
    return Effect.fail(new GitError({ code: "file_too_large", message }));
  }
  const entries = end === -1 ? left : left.slice(0, end);
  return Effect.succeed({ entries, next: end === -1 ? null : (entries.at(-1)?.path ?? null) });
};
