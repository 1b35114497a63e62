/**
 * Fills a new repository from another one: branches and tags through `git fetch`, with every object checked. Git's
 * `upload-pack` reads the source. It does not run the source's hooks and ignores its dangerous settings. Objects are
 * copied, never linked (threats.md G03, G06).
 */
import * as Effect from "effect/Effect";
import { GitError } from "../port.ts";
import { gitMessage } from "../failure.ts";
import { type GitRequest, runGit } from "../run.ts";
import { checkDefaultBranch } from "./read.ts";
import { checkSource, type Source } from "../upstream/source.ts";

interface Import {
  /** The empty bare repository to fill. */
  readonly path: string;
  /** An absolute path that the caller has allowed, or a URL. */
  readonly source: string;
  readonly defaultBranch: string | null;
  readonly allowHosts: readonly string[];
}

/** How long one import may take, in milliseconds. */
const importDeadlineMs = 30 * 60_000;

// Git's ownership check protects people who enter a directory. Here an operator has named the directory.
const uploadPack = "--upload-pack=git -c 'safe.directory=*' upload-pack";

const fetch = [
  "fetch",
  "--quiet",
  "--no-write-fetch-head",
  "--no-auto-maintenance",
  "--no-tags", // the refspec brings them all
  "--update-head-ok", // HEAD's branch is still unborn
];

/** The source's own default branch has a name that the platform cannot accept. */
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
    config: source.config,
    environment: { GIT_ALLOW_PROTOCOL: source.protocol },
    deadlineMs: importDeadlineMs,
  }).pipe(
    Effect.map(({ stdout }) => stdout),
    Effect.mapError((error) =>
      error.code === "disk_full"
        ? error
        : importFailed(`The repository could not be read. ${gitMessage(error.message, source.address)}`),
    ),
  );

const headBranch = (advertisement: string): string | null =>
  /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(advertisement)?.[1] ?? null;

/** @returns the default branch: the requested one, otherwise the source's HEAD, otherwise `main`. */
export const importInto = Effect.fnUntraced(function* (request: Import) {
  const source = yield* checkSource(request.source, request);
  const reader = source.protocol === "file" ? [uploadPack] : [];
  const advertisement = yield* fromSource(source, {
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
    request.defaultBranch ?? headBranch(advertisement.toString("utf8")) ?? "main",
  ).pipe(Effect.mapError((error) => defaultUnfit(error)));
  if (branches.has(`refs/heads/${branch}`)) return branch;
  return yield* importFailed(`The repository has no branch ${branch}. Give the name of its default branch.`);
});
