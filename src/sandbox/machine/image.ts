/** The image of one sandbox: found on this machine, with the runtime bundle that works in it. */
import { checkSecretName } from "../../domain/secret.ts";
import type { Image } from "../images/image.ts";
import type { Installation } from "./installation.ts";
import type { ImageRoot } from "./layout.ts";

/** An image as a sandbox uses it. */
export interface OpenedImage extends ImageRoot {
  readonly digest: string;
  /** The image's variables for the agent, without those that the platform sets. */
  readonly env: Readonly<Record<string, string>>;
  /** The image's PATH. Null if it sets none. */
  readonly path: string | null;
}

/** Variables of an image are bounded like secrets: together, in bytes. */
const ENV_BYTES_MAX = 64 * 1024;

/**
 * @param name as the project's manifest names it
 * @throws Error that says what to do
 */
export const openImage = async (installation: Installation, name: string): Promise<OpenedImage> => {
  const image = await installation.images.find(name);
  if (image === null) {
    throw new Error(
      `platform.toml names the image ${name}, which is not on this machine. An operator makes it with \`platform images build ${name} DIRECTORY\` or \`platform images import ${name} FILE\``,
    );
  }
  return {
    root: image.root,
    bundle: await installation.bundle(),
    digest: image.digest,
    env: agentVariables(image),
    path: image.env["PATH"] ?? null,
  };
};

/** Names that lead our own programs astray, or that the platform sets, stay out (domain/secret.ts). */
const agentVariables = ({ env }: Image): Record<string, string> => {
  let bytes = 0;
  const kept = Object.entries(env).filter(([name, value]) => {
    const issue = checkSecretName(name.toUpperCase());
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    return issue === null && !value.includes("\0") && bytes <= ENV_BYTES_MAX;
  });
  return Object.fromEntries(kept);
};
