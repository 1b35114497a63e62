/** The variables that an image sets for its programs: which of them the agent gets. */
import { checkSecretName } from "../secret/secret.ts";

/** Variables of an image are bounded like secrets: together, in bytes. */
const ENV_BYTES_MAX = 64 * 1024;

/** Names that lead our own programs astray, or that the platform sets, stay out (domain/secret/secret.ts). */
export const imageVariables = (env: Readonly<Record<string, string>>): Record<string, string> => {
  let bytes = 0;
  const variables = Object.entries(env).filter(([name, value]) => {
    const issue = checkSecretName(name.toUpperCase());
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    return issue === null && !value.includes("\0") && bytes <= ENV_BYTES_MAX;
  });
  return Object.fromEntries(variables);
};

/** Variables that a cluster or a container's runtime adds to those of the image. */
const RUNTIMES_OWN = /^(?:KUBERNETES_(?:SERVICE_|PORT)\w*|HOSTNAME|TERM|container)$/;

/**
 * The variables of a process, as the kernel shows them: `NAME=value`, each ended by NUL. Those that the container's runtime added are
 * left out.
 */
export const processVariables = (environ: string): Record<string, string> =>
  Object.fromEntries(
    environ.split("\0").flatMap((line) => {
      const at = line.indexOf("=");
      const name = line.slice(0, Math.max(at, 0));
      return at > 0 && !RUNTIMES_OWN.test(name) ? [[name, line.slice(at + 1)] as const] : [];
    }),
  );
