/**
 * Fills a new repository from another one: branches and tags, as `git fetch` brings them, every object checked. The
 * source is read by git's `upload-pack`, which runs none of its hooks and heeds none of its dangerous settings, and its
 * objects are copied, never linked (threats.md G03, G06).
 */
import * as Effect from "effect/Effect";
import { GitError } from "../port.ts";
import { gitMessage, type GitRequest, runGit } from "../run.ts";
import { checkDefaultBranch } from "./read.ts";
import { checkSource, type Source } from "../upstream/source.ts";

interface Import {
  /** The empty bare repository to fill. */
  readonly path: string;
  /** An absolute path the caller has allowed, or a URL. */
  readonly source: string;
  readonly defaultBranch: string | null;
  readonly allowHosts: readonly string[];
}

/** Milliseconds one import may take. */
const importDeadlineMs = 30 * 60_000;

/** Faults of old tools that are common in the history of sound repositories and harm nobody. */
export const toleratedFaults: Readonly<Record<string, string>> = {
  "fetch.fsck.zeroPaddedFilemode": "ignore",
  "fetch.fsck.badTimezone": "ignore",
  "fetch.fsck.missingSpaceBeforeDate": "ignore",
};

// The checker of who owns a repository is meant for people who step into a directory; here an operator named it.
const uploadPack = "--upload-pack=git -c 'safe.directory=*' upload-pack";

const fetch = [
  "fetch",
  "--quiet",
  "--no-write-fetch-head",
  "--no-auto-maintenance",
  "--no-tags", // the refspec brings them all
  "--update-head-ok", // HEAD's branch is still unborn
];

/** The repository's own default branch has a name that cannot be taken. */
export const defaultUnfit = ({ code, message }: GitError): GitError =>
  code === "reserved_branch"
    ? new GitError({ code, message })
    : importFailed(`The repository's default branch cannot be used. ${message} Choose another one.`);

const importFailed = (message: string): GitError => new GitError({ code: "import_failed", message });

const fromSource = (
  source: Source,
  request: Pick<GitRequest, "args" | "repository">,
): Effect.Effect<Buffer, GitError> =>
  runGit({
    ...request,
    config: { ...toleratedFaults, ...source.config },
    environment: { GIT_ALLOW_PROTOCOL: source.protocol },
    deadlineMs: importDeadlineMs,
  }).pipe(
    Effect.map(({ stdout }) => stdout),
    Effect.mapError((error) =>
      importFailed(`The repository could not be read. ${gitMessage(error.message, source.address)}`),
    ),
  );

const headOf = (advertised: string): string | null =>
  /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(advertised)?.[1] ?? null;

/** @returns the default branch: the asked one, else the source's HEAD, else `main`. */
export const importInto = Effect.fnUntraced(function* (request: Import) {
  const source = yield* checkSource(request.source, request.allowHosts);
  const reader = source.protocol === "file" ? [uploadPack] : [];
  const advertised = yield* fromSource(source, {
    repository: request.path,
    args: ["ls-remote", "--symref", ...reader, "--", source.address, "HEAD"],
  });
  yield* fromSource(source, {
    repository: request.path,
    args: [
      ...fetch,
      ...reader,
      "--",
      source.address,
      "+refs/heads/*:refs/heads/*",
      "+refs/tags/*:refs/tags/*",
    ],
  });
  const listing = yield* runGit({
    repository: request.path,
    args: ["for-each-ref", "--format=%(refname)", "refs/heads/"],
  });
  const branches = new Set(listing.stdout.toString("utf8").split("\n").filter(Boolean));
  if (branches.size === 0) return yield* importFailed("The repository has no branches to import.");
  const branch = yield* checkDefaultBranch(
    request.defaultBranch ?? headOf(advertised.toString("utf8")) ?? "main",
  ).pipe(Effect.mapError((error) => defaultUnfit(error)));
  if (branches.has(`refs/heads/${branch}`)) return branch;
  return yield* importFailed(`The repository has no branch ${branch}. Give the name of its default branch.`);
});
