/** The secrets that the manifest of the checked-out commit requires (`[env] required`). */

/** @param manifest text of platform.toml; empty if the file is missing. */
export const requiredSecretsOf = async (manifest: string): Promise<readonly string[]> => {
  if (manifest === "") return [];
  // Loaded late for the same reason as in config-dir.ts.
  const { parseManifest } = await import("../src/domain/manifest.ts");
  return parseManifest(Buffer.from(manifest)).env.required;
};
