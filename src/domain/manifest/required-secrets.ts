/**
 * Secrets that a manifest requires (`[env] required`) and that have no value. Sessions start anyway, with a warning.
 */

/** How many names one sentence lists. The others are counted. */
const NAMES_MAX = 20;

export const missingSecrets = (
  secretNames: readonly string[],
  present: Iterable<string>,
): readonly string[] => {
  const names = new Set(present);
  return [...new Set(secretNames)].filter((name) => !names.has(name));
};

/** @param missing at least one name */
export const missingSecretsMessage = (missing: readonly string[]): string => {
  const [first = ""] = missing;
  if (missing.length === 1) {
    return `The manifest requires the secret ${first}, but it has no value. Set it with \`platform secrets set ${first}\`.`;
  }
  const more = missing.length - NAMES_MAX;
  const names = [...missing.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])];
  const nameList = `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
  return `The manifest requires the secrets ${nameList}, but they have no values. Set each with \`platform secrets set NAME\`.`;
};

/** The names of the secrets that sandboxes get: those that are not the service's own. */
export const deliveredNames = (
  secrets: readonly { readonly name: string; readonly service: boolean }[],
): readonly string[] => secrets.flatMap(({ name, service }) => (service ? [] : [name]));

/** The warning about a trigger whose senders sign with a secret that agents have. */
export const deliveredKeyMessage = (slug: string, secretEnv: string): string =>
  `Agents have ${secretEnv}, with which senders of ${slug} sign, so they can make webhooks that are valid. Give it a new value ` +
  `that is the service's own with \`platform secrets set ${secretEnv} --service --previous-valid 24h\`. Then give the value to the sender.`;
