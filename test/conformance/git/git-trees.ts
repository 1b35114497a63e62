/** Object ids and the files of a commit, in every git backend (src/git/port.ts). A part of the suite in git.ts. */
import { expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { GitBackend, type GitError, TREE_PAGE_FILES, type TreePage } from "../../../src/git/port.ts";
import { type SimulatedEntry, SimulatedRepositories } from "../../twins/git/repositories.ts";

type Files = Readonly<Record<string, SimulatedEntry>>;
type Test = Effect.Effect<void, unknown, GitBackend | SimulatedRepositories>;
type Live = (name: string, test: () => Test) => void;

const ODD = "line\nbreak";
/** In the order of their paths' bytes. */
const FILES: Files = {
  "README.md": "one\n",
  "a-b": "dash\n",
  "a.txt": { executable: "#!/bin/sh\n" },
  "a/c": "inside\n",
  "a/deep/d": "",
  [ODD]: "odd\n",
  link: { symlink: "a/c" },
  out: { symlink: "/etc/passwd" },
  "ä/ö": "umlauts: ü\n",
};

/** A repository with one commit of these files, and what a case asks about it. */
const scene = Effect.fnUntraced(function* (files: Files) {
  const backend = yield* GitBackend;
  const pushes = yield* SimulatedRepositories;
  const repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const root = yield* backend.resolveBase(repository, "main");
  const write = (tree: Files) =>
    pushes.commit(repository, { branch: "main", onto: root, files: tree, subject: "Files" });
  const commit = yield* write(files);
  const ids = (paths: readonly string[], at = commit) => backend.objectIds(repository, { commit: at, paths });
  const page = (asked: {
    readonly path?: string;
    readonly after?: string | null;
    readonly maxBytes?: number;
  }) => backend.readTree(repository, { commit, path: "", after: null, maxBytes: 1000, ...asked });
  return { backend, repository, root, commit, write, ids, page };
});

const pathsOf = (page: TreePage | null) => page?.entries.map(({ path }) => path);
const failureCode = <A>(effect: Effect.Effect<A, GitError>) =>
  Effect.map(Effect.flip(effect), ({ code }) => code);

/** Reads page after page. */
const allPages = Effect.fnUntraced(function* (
  read: (after: string | null) => Effect.Effect<TreePage | null, GitError>,
) {
  const pages: TreePage[] = [];
  for (let after: string | null = null; ;) {
    const page: TreePage | null = yield* read(after);
    if (page === null) return yield* Effect.die(new Error("not a directory"));
    pages.push(page);
    if (page.next === null) return pages;
    after = page.next;
  }
});

const checkIds = (live: Live, more: Live): void => {
  live("tells git's own ids of files and directories", () =>
    Effect.gen(function* () {
      const { ids } = yield* scene({ "README.md": "one\ntwo\n", "docs/guide.md": "guide\n" });
      const root = "c0ad381c926776a49095dbb2656ec4d1d0807795";
      expect(yield* ids(["", ".", "docs", "docs/guide.md", "README.md"])).toEqual([
        root,
        root,
        "6566a947656ac242329ffe5d925e5c0ac35094ea",
        "7e2b6439aebf0bb975796f691b3b227d0af43bb5",
        "814f4a422927b82f5f8a43f8fab6d3839e3983f2",
      ]);
      expect(yield* ids([])).toEqual([]);
    }),
  );

  more("tells null for a path without a file or directory, and for a submodule, beside those it finds", () =>
    Effect.gen(function* () {
      const { root, write, ids } = yield* scene({});
      const commit = yield* write({ ...FILES, module: { submodule: root } });
      const none = [
        "none",
        "a/none",
        "README.md/x",
        "link/x",
        "module",
        "module/x",
        "..",
        "a/../README.md",
        "a/.",
        "./a",
        "/a",
        "a/",
        "a//c",
        "a\0c",
        "none\nREADME.md",
        "\ud800",
        `${commit} missing`,
      ];
      expect(yield* ids([...none, ODD, "link"], commit)).toEqual([
        ...none.map(() => null),
        expect.stringMatching(/^[0-9a-f]{40}$/),
        expect.stringMatching(/^[0-9a-f]{40}$/),
      ]);
    }),
  );

  more("tells another id of a directory if a file below it changes its content, mode or name", () =>
    Effect.gen(function* () {
      const tree: Files = { "a/b/c": "c\n", "a/d": "d\n", other: "o\n" };
      const { ids, write } = yield* scene(tree);
      const [before] = yield* ids(["a"]);
      const idAfter = Effect.fnUntraced(function* (files: Files) {
        return (yield* ids(["a"], yield* write(files)))[0];
      });
      const { "a/b/c": _, ...without } = tree;
      const changed = [
        { ...tree, "a/b/c": "C\n" },
        { ...tree, "a/b/c": { executable: "c\n" } },
        { ...tree, "a/b/c": { symlink: "c\n" } },
        { ...without, "a/b/C": "c\n" },
        { ...tree, "a/e": "" },
        without,
      ];
      const seen = new Set([before]);
      for (const files of changed) seen.add(yield* idAfter(files));
      expect(seen.size).toBe(changed.length + 1);
      expect(yield* idAfter({ ...tree, other: "changed\n", more: "m\n" })).toBe(before);
    }),
  );

  live("packs a commit with its history, up to a size", () =>
    Effect.gen(function* () {
      const { backend, repository, commit } = yield* scene(FILES);
      const pack = yield* backend.pack(repository, { commit, maxBytes: 1_000_000 });
      expect(pack?.length).toBeGreaterThan(0);
      expect(yield* backend.pack(repository, { commit, maxBytes: 0 })).toBe(null);
      for (const unknown of ["f".repeat(40), "main", "--all", ""]) {
        const packing = backend.pack(repository, { commit: unknown, maxBytes: 1_000_000 });
        expect(yield* failureCode(packing), unknown).toBe("unknown_ref");
      }
    }),
  );

  live("tells the ids of a commit without one of its files", () =>
    Effect.gen(function* () {
      const tree: Files = { "a/b/c": "c\n", "a/b/d": "d\n", "a/b.c": "dot\n", "ä/only": "o\n", root: "r\n" };
      const { backend, repository, commit, root, ids, write } = yield* scene(tree);
      const asked = ["", ".", "a", "a/b", "a/b/c", "ä", "ä/only", "root"];
      const idsBut = (without: string, at = commit) =>
        backend.objectIds(repository, { commit: at, paths: asked, without });
      for (const without of ["a/b/c", "a/b.c", "ä/only", "root"]) {
        const { [without]: _, ...rest } = tree;
        expect(yield* idsBut(without), without).toEqual(yield* ids(asked, yield* write(rest)));
      }
      const all = yield* ids(asked);
      for (const without of ["a", "a/b", "none", "a/none", "", "..", "root/x"])
        expect(yield* idsBut(without), without).toEqual(all);
      // The only file of a repository, and a submodule.
      const only = yield* write({ root: "r\n" });
      expect((yield* idsBut("root", only))[0]).toBe("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
      const module = yield* write({ ...tree, root: { submodule: root } });
      expect(yield* idsBut("root", module)).toEqual(yield* ids(asked, module));
      expect(yield* failureCode(idsBut("root", "e".repeat(40)))).toBe("unknown_ref");
    }),
  );

  more("reports unknown_ref for a commit that does not exist, and for a name", () =>
    Effect.gen(function* () {
      const { backend, repository, ids } = yield* scene(FILES);
      const [blob = null] = yield* ids(["README.md"]);
      for (const commit of ["e".repeat(40), "main", "HEAD", "", "--all", blob ?? ""]) {
        expect(yield* failureCode(ids(["README.md"], commit)), commit).toBe("unknown_ref");
        const read = backend.readTree(repository, { commit, path: "", after: null, maxBytes: 100 });
        expect(yield* failureCode(read), commit).toBe("unknown_ref");
      }
    }),
  );
};

const checkPages = (live: Live, more: Live): void => {
  live("reads the files below a directory in the order of their paths, and follows no link [M14]", () =>
    Effect.gen(function* () {
      const { page } = yield* scene(FILES);
      const whole = yield* page({});
      expect(whole?.next).toBeNull();
      expect(
        whole?.entries.map(({ path, kind, content }) => [path, kind, Buffer.from(content).toString()]),
      ).toEqual(
        [
          ["README.md", "file", "one\n"],
          ["a-b", "file", "dash\n"],
          ["a.txt", "executable", "#!/bin/sh\n"],
          ["a/c", "file", "inside\n"],
          ["a/deep/d", "file", ""],
          [ODD, "file", "odd\n"],
          ["link", "link", "a/c"],
          ["out", "link", "/etc/passwd"],
          ["ä/ö", "file", "umlauts: ü\n"],
        ].toSorted(([a = ""], [b = ""]) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
      );
      expect(whole?.entries.every(({ size, content }) => size === content.length)).toBe(true);
      expect(yield* page({ path: "." })).toEqual(whole);
      expect(pathsOf(yield* page({ path: "a" }))).toEqual(["c", "deep/d"]);
      expect(pathsOf(yield* page({ path: "a/deep" }))).toEqual(["d"]);
    }),
  );

  more("leaves submodules out [M14]", () =>
    Effect.gen(function* () {
      const { backend, repository, root, write } = yield* scene({});
      const commit = yield* write({ a: "a", module: { submodule: root }, z: { submodule: root } });
      const read = (maxBytes: number) =>
        backend.readTree(repository, { commit, path: "", after: null, maxBytes });
      expect(yield* read(1)).toMatchObject({ entries: [{ path: "a" }], next: null });
    }),
  );

  live("names all files, and counts those beyond the limit", () =>
    Effect.gen(function* () {
      const { backend, repository, root, commit, write } = yield* scene(FILES);
      const paths = (limit: number, at = commit) => backend.paths(repository, { commit: at, limit });
      const all = Object.keys(FILES).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(yield* paths(100)).toEqual({ paths: all, total: all.length });
      expect(yield* paths(2)).toEqual({ paths: all.slice(0, 2), total: all.length });
      expect(yield* paths(2, root)).toEqual({ paths: [], total: 0 });
      const other = yield* write({ a: "a", module: { submodule: root } });
      expect(yield* paths(100, other)).toEqual({ paths: ["a"], total: 1 });
      expect(yield* failureCode(paths(2, "0".repeat(40)))).toBe("unknown_ref");
    }),
  );

  more("is null for a path that is not a directory", () =>
    Effect.gen(function* () {
      const { backend, repository, root, write } = yield* scene({});
      const commit = yield* write({ ...FILES, module: { submodule: root } });
      for (const path of [
        "none",
        "README.md",
        "link",
        "module",
        "..",
        "a/..",
        "/a",
        "a/",
        "a/deep/../deep",
      ]) {
        const page = yield* backend.readTree(repository, { commit, path, after: null, maxBytes: 100 });
        expect(page, path).toBeNull();
      }
      const empty = { commit: root, path: "", after: null, maxBytes: 100 };
      expect(yield* backend.readTree(repository, empty)).toEqual({ entries: [], next: null });
    }),
  );

  more("ends a page before its contents exceed the limit, and continues behind it", () =>
    Effect.gen(function* () {
      const { page } = yield* scene(FILES);
      const whole = yield* page({});
      for (const maxBytes of [12, 13, 20, 1000]) {
        const pages = yield* allPages((after) => page({ after, maxBytes }));
        expect(pages.flatMap(({ entries }) => entries)).toEqual(whole?.entries);
        for (const [index, { entries }] of pages.entries()) {
          const bytes = entries.reduce((sum, { size }) => sum + size, 0);
          const following = pages[index + 1]?.entries[0]?.size ?? Number.POSITIVE_INFINITY;
          expect(bytes).toBeLessThanOrEqual(maxBytes);
          expect(bytes + following).toBeGreaterThan(maxBytes);
        }
      }
      expect(pathsOf(yield* page({ after: "a/zz" }))?.[0]).toBe(ODD);
      expect(yield* page({ after: "\u{10ffff}" })).toEqual({ entries: [], next: null });
    }),
  );

  more("refuses a file beyond the limit when its turn comes [M16]", () =>
    Effect.gen(function* () {
      const { page } = yield* scene({ a: "a", b: "12345", c: "c" });
      expect(yield* page({ maxBytes: 4 })).toMatchObject({ entries: [{ path: "a" }], next: "a" });
      expect(yield* failureCode(page({ maxBytes: 4, after: "a" }))).toBe("file_too_large");
      expect(yield* page({ maxBytes: 5, after: "a" })).toMatchObject({ entries: [{ path: "b" }], next: "b" });
    }),
  );

  more("limits the number of files in a page", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: TREE_PAGE_FILES + 1 }, (_, n) => `f${String(n).padStart(5, "0")}`);
      const { page } = yield* scene(Object.fromEntries(names.map((name) => [name, ""])));
      const pages = yield* allPages((after) => page({ after }));
      expect(pages.map(({ entries }) => entries.length)).toEqual([TREE_PAGE_FILES, 1]);
      expect(pages.flatMap(pathsOf)).toEqual(names);
    }),
  );
};

/** Registers the part. @param more registers its variations */
export const checkTrees = (live: Live, more: Live): void => {
  checkIds(live, more);
  checkPages(live, more);
};
