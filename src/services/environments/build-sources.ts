/**
 * The source of a commit's environment: a Dockerfile, or a devcontainer.json that names one or an image. Also which
 * files of the commit the build sees.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import {
  DEFAULT_DEVCONTAINER,
  DEVCONTAINER_LIMIT_BYTES,
  type Devcontainer,
  readDevcontainer,
} from "../../domain/environment/devcontainer.ts";
import {
  type BuildSource,
  buildKey,
  type DockerfileSource,
  type ManifestEnvironment,
} from "../../domain/environment/environment-source.ts";
import { GitBackend, type GitError, type Repository, type TreePage } from "../../git/port.ts";

/** A commit of a repository. */
export interface CommitPlace {
  readonly repository: Repository;
  readonly commit: string;
}

/** Faults of a commit's file that never go away. */
const unusable = ({ code }: GitError): string | null => {
  if (code === "not_a_file") return "It is a directory or a link, and must be a file.";
  if (code === "file_too_large") return `The file is larger than ${DEVCONTAINER_LIMIT_BYTES} bytes.`;
  return null;
};

/** Reads a devcontainer.json. A failure is a sentence for people. */
const devcontainerAt = Effect.fnUntraced(function* (
  { repository, commit }: CommitPlace,
  path: string,
): Effect.fn.Return<Result.Result<Devcontainer, string> | null, GitError, GitBackend> {
  const git = yield* GitBackend;
  const read = yield* Effect.result(
    git.readFile(repository, { commit, path, maxBytes: DEVCONTAINER_LIMIT_BYTES }),
  );
  if (Result.isSuccess(read)) return read.success === null ? null : readDevcontainer(read.success, path);
  const reason = unusable(read.failure);
  return reason === null ? yield* read.failure : Result.fail(`${path}: ${reason}`);
});

/** A source with the key of its build. */
const withKey = Effect.fnUntraced(function* (
  { repository, commit }: CommitPlace,
  source: DockerfileSource,
): Effect.fn.Return<{ readonly source: BuildSource; readonly exists: boolean }, GitError, GitBackend> {
  const git = yield* GitBackend;
  const { dockerfile, context, devcontainer } = source;
  const [file = null, tree = null] = yield* git.objectIds(repository, {
    commit,
    paths: [dockerfile, context],
    ...(devcontainer !== undefined && { without: devcontainer.path }),
  });
  const key = buildKey(source, { dockerfile: file, context: tree });
  return { source: { ...source, commit, key }, exists: file !== null };
});

const devcontainerFields = (path: string, { build, ...rest }: Devcontainer): DockerfileSource => {
  const { variables, commands, setup, ignored } = rest;
  const commonFields = { path, variables, commands, setup, ignored };
  if (build.kind === "image") {
    const fields = { dockerfile: path, context: "", target: null, args: {} };
    return { ...fields, devcontainer: { ...commonFields, image: build.image } };
  }
  const { dockerfile, context, target, args } = build;
  return { dockerfile, context, target, args, devcontainer: { ...commonFields, image: null } };
};

/**
 * Finds the source of a commit's environment. A named Dockerfile that does not exist is left to the build to report.
 * @returns null if nothing is built, or a sentence that says why the devcontainer.json cannot be used
 */
export const sourceAt = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  environment: ManifestEnvironment,
): Effect.fn.Return<Result.Result<BuildSource | null, string>, GitError, GitBackend> {
  const place = { repository, commit };
  if (environment.kind === "image") return Result.succeed(null);
  if (environment.kind === "dockerfile") {
    const { kind: _, isNamed, ...fields } = environment;
    const { source, exists } = yield* withKey(place, fields);
    return Result.succeed(exists || isNamed ? source : null);
  }
  const { path, secrets } = environment;
  const read = yield* devcontainerAt(place, path);
  if (read === null)
    return Result.fail(`The repository has no file ${path}. Correct \`devcontainer\` in [environment].`);
  if (Result.isFailure(read)) return Result.fail(read.failure);
  const fields = { ...devcontainerFields(path, read.success), ...(secrets !== undefined && { secrets }) };
  return Result.succeed((yield* withKey(place, fields)).source);
});

/** A devcontainer.json at its usual place, which the manifest does not name. */
export interface UnusedDevcontainer {
  readonly path: string;
  /** Why the service could not use it. Null if it could. */
  readonly problem: string | null;
}

/** Looks whether a commit has a devcontainer.json. @returns null if it has none, or the repository cannot be read */
export const unusedDevcontainer = (
  place: CommitPlace,
): Effect.Effect<UnusedDevcontainer | null, never, GitBackend> =>
  devcontainerAt(place, DEFAULT_DEVCONTAINER).pipe(
    Effect.map(
      (read) => read && { path: DEFAULT_DEVCONTAINER, problem: Result.isFailure(read) ? read.failure : null },
    ),
    Effect.orElseSucceed(() => null),
  );

/** The only file of a build that uses a registry's image as it is. It has no other instruction, and so runs nothing. */
const imageFiles = (path: string, image: string): TreePage => {
  const content = new TextEncoder().encode(`FROM ${image}\n`);
  return { entries: [{ path, kind: "file", size: content.length, content }], next: null };
};

export interface BuildFilesRequest {
  readonly repository: Repository;
  readonly source: BuildSource;
  /** Continues behind this path. If null, it begins with the first file. */
  readonly after: string | null;
  /** How many bytes the contents of a page may have together. */
  readonly maxBytes: number;
}

/** A page of the files that a build sees. Null if its context is no directory. */
export const buildFiles = Effect.fnUntraced(function* ({
  repository,
  source: { commit, context, devcontainer, dockerfile },
  after,
  maxBytes,
}: BuildFilesRequest): Effect.fn.Return<TreePage | null, GitError, GitBackend> {
  if (devcontainer !== undefined && devcontainer.image !== null)
    return imageFiles(dockerfile, devcontainer.image);
  const git = yield* GitBackend;
  const page = yield* git.readTree(repository, { commit, path: context, after, maxBytes });
  if (page === null || devcontainer === undefined) return page;
  const prefix = context === "" ? "" : `${context}/`;
  return { ...page, entries: page.entries.filter(({ path }) => prefix + path !== devcontainer.path) };
});
