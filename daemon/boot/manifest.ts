/** The parts of the checked-out commit's manifest that the daemon acts on, and of the devcontainer.json that it names. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";

/** The command that prepares the checkout. */
export interface SetupWish {
  /** For `sh -e`. */
  readonly command: string;
  /** What people see in place of the command. Null means its first line. */
  readonly title: string | null;
  /** Where it is written. */
  readonly place: string;
}

/** A file of the commit that has no effect, and why. */
export interface FileFault {
  readonly file: string;
  readonly message: string;
}

export interface ManifestParts {
  /** The secrets that the project needs (`[env] required`). */
  readonly requiredSecrets: readonly string[];
  /** `[environment] setup`, otherwise the lifecycle commands of the devcontainer.json. */
  readonly setup: SetupWish | null;
  /** Why the whole manifest, or the devcontainer.json, counts as empty. Null if neither does. */
  readonly fault: FileFault | null;
}

/** Reads the first bytes of a file of the checked-out commit. */
export type ReadFile<E> = (path: string, maxBytes: number) => Effect.Effect<Uint8Array | null, E>;

const NOTHING: ManifestParts = { requiredSecrets: [], setup: null, fault: null };

const fromDevcontainer = Effect.fnUntraced(function* <E>(
  file: string,
  readFile: ReadFile<E>,
): Effect.fn.Return<Pick<ManifestParts, "setup" | "fault">, E> {
  // Loaded late, because most projects have none.
  const { DEVCONTAINER_LIMIT_BYTES, readDevcontainer } = yield* Effect.promise(
    () => import("../../src/domain/environment/devcontainer.ts"),
  );
  // One byte more shows that a file is too large.
  const bytes = yield* readFile(file, DEVCONTAINER_LIMIT_BYTES + 1);
  if (bytes === null)
    return {
      setup: null,
      fault: { file, message: "The commit has no such file, but platform.toml names it." },
    };
  const read = readDevcontainer(bytes, file);
  if (Result.isFailure(read)) return { setup: null, fault: { file, message: read.failure } };
  const { setup: command, commands } = read.success;
  if (command === null) return { setup: null, fault: null };
  const title = `${commands.join(", ")} of ${file}`;
  return { setup: { command, title, place: `${commands.join(", ")} in ${file}` }, fault: null };
});

/**
 * @param manifest text of platform.toml; empty if the file is missing. An invalid manifest asks for nothing.
 */
export const manifestParts = Effect.fnUntraced(function* <E>(
  manifest: string,
  readFile: ReadFile<E>,
): Effect.fn.Return<ManifestParts, E> {
  if (manifest === "") return NOTHING;
  // Loaded late for the same reason as in config-dir.ts.
  const { MANIFEST_FILE, parseManifest } = yield* Effect.promise(
    () => import("../../src/domain/manifest/manifest.ts"),
  );
  const { env, environment, setup, fatal, errors } = parseManifest(Buffer.from(manifest));
  if (fatal)
    return {
      ...NOTHING,
      fault: { file: MANIFEST_FILE, message: errors[0]?.message ?? "It cannot be read." },
    };
  const parts = { ...NOTHING, requiredSecrets: env.required };
  if (setup !== null) {
    const place = "`setup` in `[environment]` of platform.toml";
    return { ...parts, setup: { command: setup, title: null, place } };
  }
  if (environment.kind !== "devcontainer") return parts;
  return { ...parts, ...(yield* fromDevcontainer(environment.path, readFile)) };
});
