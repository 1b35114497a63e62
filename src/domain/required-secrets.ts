/**
 * Secrets that a manifest requires (`[env] required`) and that have no value. Sessions start anyway, with a warning.
 */

/** How many names one sentence lists. The others are counted. */
const NAMES_MAX = 20;

export const missingSecrets = (required: readonly string[], present: Iterable<string>): readonly string[] => {
  const names = new Set(present);
  return [...new Set(required)].filter((name) => !names.has(name));
};

/** @param missing at least one name */
export const missingSecretsMessage = (missing: readonly string[]): string => {
  const [first = ""] = missing;
  if (missing.length === 1) {
    return `The manifest requires the secret ${first}, but it has no value. Set it with \`platform secrets set ${first}\`.`;
  }
  const more = missing.length - NAMES_MAX;
  const names = [...missing.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])];
  const listed = `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
  return `The manifest requires the secrets ${listed}, but they have no values. Set each with \`platform secrets set NAME\`.`;
};
