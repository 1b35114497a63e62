/** The parts of the checked-out commit's manifest that the daemon acts on. */

export interface ManifestParts {
  /** The secrets that the project needs (`[env] required`). */
  readonly requiredSecrets: readonly string[];
  /** The command that prepares the checkout (`[environment] setup`). Null: none. */
  readonly setup: string | null;
  /** Why the whole manifest counts as empty. Null: it does not. */
  readonly fault: string | null;
}

/** @param manifest text of platform.toml; empty if the file is missing. An invalid manifest asks for nothing. */
export const manifestParts = async (manifest: string): Promise<ManifestParts> => {
  if (manifest === "") return { requiredSecrets: [], setup: null, fault: null };
  // Loaded late for the same reason as in config-dir.ts.
  const { parseManifest } = await import("../src/domain/manifest.ts");
  const { env, setup, fatal, errors } = parseManifest(Buffer.from(manifest));
  return {
    requiredSecrets: env.required,
    setup,
    fault: fatal ? (errors[0]?.message ?? "It cannot be read.") : null,
  };
};
