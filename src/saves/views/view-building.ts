/** Makes a view's commit (view.ts, W2 and W3). */
import * as Effect from "effect/Effect";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isCheckoutPath } from "../../domain/save/checkout-path.ts";
import { GONE } from "../../domain/save/listing.ts";
import { gitFailure } from "../../git/failure.ts";
import { PLATFORM } from "../../git/identity.ts";
import { filesystem } from "../../git/repository/building.ts";
import { feed, runGit, spawnGit } from "../../git/run.ts";
import { TOLERATED } from "../../git/tolerated-faults.ts";
import type { SavePlace } from "../port.ts";
import { gitError, LONG_MS, SAVES_CONFIG } from "../saves-repository.ts";
import type { Save, SaveStore, StoredCommits, StoredContent } from "../store.ts";

export interface ViewPlan {
  /** The empty repository, with the project's as its alternate. */
  readonly path: string;
  readonly place: SavePlace;
  readonly save: Save;
  readonly store: SaveStore["Service"];
}

/** Git's checks of safety, without those of harmless faults. */
const STRICT = `--strict=${TOLERATED.map((fault) => `${fault}=ignore`).join(",")}`;
/** What git may use while it checks the pack of a sandbox. */
const BOUNDS = { memoryBytes: 1024 ** 3, fileBytes: 4 * 1024 ** 3 };
/** How many names a message lists. */
const NAMES_MAX = 100;

const isCommitHere = (path: string, commit: string) =>
  Effect.map(
    runGit({ repository: path, args: ["cat-file", "-t", commit], expect: [0, 128] }),
    ({ stdout }) => stdout.toString("utf8").trim() === "commit",
  );

const writeContent = Effect.fnUntraced(function* (
  stdin: Parameters<typeof feed>[0],
  bytes: NonNullable<StoredContent["bytes"]>,
) {
  if (Buffer.isBuffer(bytes)) return yield* feed(stdin, bytes);
  yield* Effect.promise(async () => {
    for await (const chunk of bytes) await Effect.runPromise(feed(stdin, chunk as Buffer));
  });
});

/** Whether git's checks accept the pack, which is then in the view. */
const unpack = Effect.fnUntraced(function* ({ path, place, store }: ViewPlan, object: string) {
  const git = yield* spawnGit({
    repository: path,
    args: ["index-pack", STRICT, "--fix-thin", "--stdin"],
    bounds: BOUNDS,
  });
  git.stdout.resume();
  const contents = yield* Effect.mapError(store.contents(place, [object]), gitError);
  yield* Effect.promise(async () => {
    for await (const { bytes } of contents)
      if (bytes !== null) await Effect.runPromise(writeContent(git.stdin, bytes));
  });
  git.stdin.end();
  return (yield* git.exit) === 0;
}, Effect.scoped);

/** The refs of the workspace's own repository whose commits are in the view, and the names of the others. */
const takeCommits = Effect.fnUntraced(function* (plan: ViewPlan) {
  const here: StoredCommits[] = [];
  const missing: string[] = [];
  const own = plan.save.commits.filter(({ repository }) => repository === "");
  for (const { object } of own) if (object !== null) yield* unpack(plan, object);
  for (const commits of own) {
    if (yield* isCommitHere(plan.path, commits.commit)) here.push(commits);
    else missing.push(`${commits.ref} ${commits.commit}`);
  }
  const nestedCommits = plan.save.commits.filter(({ repository }) => repository !== "");
  for (const { repository, ref, commit } of nestedCommits)
    missing.push(`${ref} ${commit} of the repository in ${repository}`);
  return { here, missing };
});

const displayPath = (path: string): string =>
  Buffer.from(path, "latin1")
    .toString("utf8")
    // oxlint-disable-next-line no-control-regex -- what a sandbox wrote into a name must not steer a terminal
    .replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?");

const section = (title: string, names: readonly string[]): string => {
  if (names.length === 0) return "";
  const more = names.length > NAMES_MAX ? [`and ${names.length - NAMES_MAX} more`] : [];
  return `\n${title}\n${[...names.slice(0, NAMES_MAX).map(displayPath), ...more].map((name) => `  ${name}\n`).join("")}`;
};

interface Parts {
  readonly head: string | null;
  readonly here: readonly StoredCommits[];
  readonly missing: readonly string[];
  readonly leftOut: readonly string[];
}

const message = ({ place, save }: ViewPlan, { here, missing, leftOut }: Parts): string => {
  const others = save.items.filter(({ kind }) => kind !== "file");
  return [
    `Saved work of session ${place.sessionId}\n`,
    "\nThe files of the session's sandbox, as they were when they were saved.\n",
    section(
      "Its refs. To have one, run: git branch <name> <commit>",
      here.map(({ ref, commit }) => `${ref} ${commit}`),
    ),
    section("Commits that are not here. A restart of the session has them:", missing),
    section("Files that are not here, because git would refuse them:", leftOut),
    others.length === 0
      ? ""
      : "\nThe index and the state of a merge or rebase are not here. A restart has them.\n",
  ].join("");
};

/** A path as fast-import reads it. */
const quotePath = (path: string): string =>
  `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

const commitHead = (plan: ViewPlan, parts: Parts): readonly Buffer[] => {
  const { place, save } = plan;
  const text = Buffer.from(message(plan, parts));
  const from = parts.head ?? save.base;
  const others = [...new Set(parts.here.map(({ commit }) => commit))].filter((commit) => commit !== from);
  const parents = [...(from === null ? others : [from, ...others])];
  return [
    latin1(`commit refs/wip/${place.sessionId}\n`),
    latin1(`committer ${PLATFORM.name} <${PLATFORM.email}> ${Math.floor(save.at / 1000)} +0000\n`),
    latin1(`data ${text.length}\n`),
    text,
    latin1(parents.map((commit, index) => `${index === 0 ? "from" : "merge"} ${commit}\n`).join("")),
  ];
};

/** Makes the commit of the files that `isTaken`, and the parts. */
const writeCommit = Effect.fnUntraced(function* (
  plan: ViewPlan,
  parts: Omit<Parts, "leftOut">,
  isTaken: (item: Save["items"][number]) => boolean,
) {
  const { path, place, save, store } = plan;
  const files = save.items.filter(({ kind }) => kind === "file");
  const takenFiles = files.filter(isTaken);
  const leftOut = files.filter((item) => !isTaken(item)).map((item) => item.path);
  const git = yield* spawnGit({
    repository: path,
    args: ["fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=raw"],
    config: SAVES_CONFIG,
  });
  git.stdout.resume();
  const objects = [...new Set(takenFiles.flatMap(({ object }) => object ?? []))];
  const contents = yield* Effect.mapError(store.contents(place, objects), gitError);
  yield* Effect.promise(async () => {
    for await (const { size, bytes } of contents) {
      if (bytes === null) continue;
      await Effect.runPromise(feed(git.stdin, latin1(`blob\ndata ${size}\n`)));
      await Effect.runPromise(writeContent(git.stdin, bytes));
      await Effect.runPromise(feed(git.stdin, latin1("\n")));
    }
  });
  const tree = save.base === null ? null : yield* readTree(path, save.base);
  const deletedFiles = takenFiles.filter(({ object, mode }) => object === null || mode === GONE);
  const there = takenFiles.filter(({ object, mode }) => object !== null && mode !== GONE);
  const commands = [
    ...commitHead(plan, { ...parts, leftOut }),
    latin1(tree === null ? "deleteall\n" : `M 040000 ${tree} ""\n`),
    latin1(deletedFiles.map((item) => `D ${quotePath(item.path)}\n`).join("")),
    latin1(there.map((item) => `M ${item.mode} ${item.object} ${quotePath(item.path)}\n`).join("")),
    latin1("done\n"),
  ];
  for (const bytes of commands) yield* feed(git.stdin, bytes);
  git.stdin.end();
  if ((yield* git.exit) !== 0) {
    yield* git.silent;
    return yield* gitFailure("fast-import", { stderr: git.stderr(), repository: path });
  }
}, Effect.scoped);

const readTree = (path: string, commit: string) =>
  Effect.map(
    runGit({ repository: path, args: ["rev-parse", "--verify", `${commit}^{tree}`] }),
    ({ stdout }) => stdout.toString("utf8").trim(),
  );

const packsIn = (path: string) =>
  Effect.map(
    filesystem("Reading the view", () => readdir(join(path, "objects", "pack"))),
    (names) => new Set(names.filter((name) => name.endsWith(".pack"))),
  );

/** Whether git's checks accept what the commit added. */
const isSound = Effect.fnUntraced(function* (path: string, before: ReadonlySet<string>) {
  const newPacks = [...(yield* packsIn(path))].filter((name) => !before.has(name));
  for (const name of newPacks) {
    const { exitCode } = yield* runGit({
      repository: path,
      args: ["index-pack", STRICT, "-o", join(path, "checked.idx"), join(path, "objects", "pack", name)],
      expect: [0, 128],
      deadlineMs: LONG_MS,
    });
    if (exitCode !== 0) return false;
  }
  return true;
});

/** Files that git reads settings from. Their content can fail its checks. */
const isSettings = (path: string): boolean => /(?:^|\/)\.?git[a-z~0-9]*[ .]*$/i.test(path.normalize());

const isPath = ({ path, mode }: Save["items"][number]): boolean => isCheckoutPath(path, mode);

/** Makes the commit. @returns its id. */
export const buildView = Effect.fnUntraced(function* (plan: ViewPlan) {
  const { path, place, save } = plan;
  const { here, missing } = yield* takeCommits(plan);
  const isHeadHere = save.head.commit !== null && (yield* isCommitHere(path, save.head.commit));
  const parts = { here, missing, head: isHeadHere ? save.head.commit : null };
  const before = yield* packsIn(path);
  yield* writeCommit(plan, parts, isPath);
  if (!(yield* isSound(path, before)))
    yield* writeCommit(plan, parts, (item) => isPath(item) && !isSettings(item.path));
  const { stdout } = yield* runGit({
    repository: path,
    args: ["rev-parse", "--verify", `refs/wip/${place.sessionId}`],
  });
  return stdout.toString("utf8").trim();
});
