/**
 * What a change request would break: mistakes in the files that the service itself reads from the default branch,
 * `platform.toml` and what its `[environment]` names, as the proposed commit has them.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { DOCKERFILE_BYTES_MAX, parseDockerfile } from "../../../domain/environment/dockerfile.ts";
import type { ManifestEnvironment } from "../../../domain/environment/environment-source.ts";
import { MANIFEST_FILE, parseManifest, type Manifest } from "../../../domain/manifest/manifest.ts";
import { type Comparison, GitBackend, type GitError, type Repository } from "../../../git/port.ts";
import { sourceAt } from "../../../services/environments/build-sources.ts";
import { manifestText } from "../../../services/projects/repository.ts";

/** One mistake. `line` counts from 1; null: it concerns the whole file, or its line is not known. */
export interface FileMistake {
  readonly file: string;
  readonly line: number | null;
  readonly message: string;
}

/** How many warnings are listed, and how long a message may be, in UTF-16 units. The author corrects them one by one anyway. */
const WARNINGS_MAX = 20;
const MESSAGE_MAX = 500;

/** The first of a request's warnings. The last one says how many follow. */
export const namedWarnings = (all: readonly FileMistake[]): readonly FileMistake[] => {
  const next = all[WARNINGS_MAX - 1];
  if (next === undefined || all.length === WARNINGS_MAX) return all;
  const left = all.length - WARNINGS_MAX + 1;
  return [
    ...all.slice(0, WARNINGS_MAX - 1),
    {
      file: next.file,
      line: null,
      message: `${left} more warnings are not shown, the first of them for this file.`,
    },
  ];
};

interface Proposed {
  readonly repository: Repository;
  /** A full commit id. */
  readonly commit: string;
}

/** A file that can never be read is a mistake; any other fault of the repository is the caller's. */
const readOr = <A, R>(
  file: string,
  read: Effect.Effect<A, GitError, R>,
): Effect.Effect<Result.Result<A, FileMistake>, GitError, R> =>
  read.pipe(
    Effect.map((value): Result.Result<A, FileMistake> => Result.succeed(value)),
    Effect.catchIf(
      ({ code }) => code === "not_a_file" || code === "file_too_large",
      ({ message }) => Effect.succeed(Result.fail({ file, line: null, message })),
    ),
  );

/** The file that says how the environment is built, if the repository has to have one. */
const environmentFile = (environment: ManifestEnvironment): string | null => {
  if (environment.kind === "image") return null;
  return environment.kind === "devcontainer" ? environment.path : environment.dockerfile;
};

const dockerfileMistakes = Effect.fnUntraced(function* ({ repository, commit }: Proposed, file: string) {
  const git = yield* GitBackend;
  const read = git.readFile(repository, { commit, path: file, maxBytes: DOCKERFILE_BYTES_MAX });
  const bytes = yield* readOr(file, read);
  if (Result.isFailure(bytes)) return [bytes.failure];
  if (bytes.success === null) return [{ file, line: null, message: `The repository has no file ${file}.` }];
  const parsed = parseDockerfile(Buffer.from(bytes.success).toString("utf8"));
  return parsed.kind === "error" ? [{ file, line: parsed.line, message: `${parsed.problem}.` }] : [];
});

/** The mistakes of what `[environment]` names. A build may fail for other reasons: nothing is built here. */
const environmentMistakes = Effect.fnUntraced(function* (
  { repository, commit }: Proposed,
  environment: ManifestEnvironment,
): Effect.fn.Return<readonly FileMistake[], GitError, GitBackend> {
  const file = environmentFile(environment);
  if (file === null) return [];
  const source = yield* readOr(file, sourceAt(repository, commit, environment));
  if (Result.isFailure(source)) return [source.failure];
  if (Result.isFailure(source.success)) return [{ file, line: null, message: source.success.failure }];
  const buildSource = source.success.success;
  // No file, and none was named: then sessions run on the machine's own programs. An image needs no Dockerfile.
  if (
    buildSource === null ||
    (buildSource.devcontainer !== undefined && buildSource.devcontainer.image !== null)
  )
    return [];
  return yield* dockerfileMistakes({ repository, commit }, buildSource.dockerfile);
});

const manifestMistakes = ({ errors }: Manifest): readonly FileMistake[] =>
  errors.map(({ path, line, message }) => ({
    file: MANIFEST_FILE,
    line,
    message: path === null ? message : `${path}: ${message}`,
  }));

/**
 * The mistakes that a merge of this comparison would bring. Files that it does not change are not looked
 * at, except those that a changed `platform.toml` names.
 */
export const proposedMistakes = Effect.fnUntraced(function* (
  repository: Repository,
  { head, filesChanged, filesTotal }: Pick<Comparison, "head" | "filesChanged" | "filesTotal">,
): Effect.fn.Return<readonly FileMistake[], GitError, GitBackend> {
  const paths = new Set(filesChanged.map(({ path }) => path));
  /** Of a very large change only the first files are listed: any other may have changed too. */
  const isChanged = (path: string) => paths.has(path) || paths.size < filesTotal;
  const text = yield* readOr(MANIFEST_FILE, manifestText(repository, head));
  if (Result.isFailure(text)) return isChanged(MANIFEST_FILE) ? [text.failure] : [];
  const manifest = parseManifest(text.success ?? new Uint8Array());
  const own = isChanged(MANIFEST_FILE) ? manifestMistakes(manifest) : [];
  const file = environmentFile(manifest.environment);
  const concerns =
    !manifest.fatal &&
    file !== null &&
    // A devcontainer.json may name a Dockerfile, which its reader finds.
    (isChanged(MANIFEST_FILE) || isChanged(file) || manifest.environment.kind === "devcontainer");
  const others = concerns
    ? yield* environmentMistakes({ repository, commit: head }, manifest.environment)
    : [];
  return [...own, ...others].map(({ file: of, line, message }) => ({
    file: of,
    line,
    message: message.slice(0, MESSAGE_MAX),
  }));
});
