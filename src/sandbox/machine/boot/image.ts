/** The image of one sandbox: found on this machine, with the runtime bundle that works in it. */
import { imageVariables } from "../../../domain/environment/image-variables.ts";
import type { Installation } from "../installation.ts";
import type { OpenedImage } from "./layout.ts";

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
  await installation.images.hold(image);
  return {
    root: image.root,
    bundle: await installation.bundle(),
    digest: image.digest,
    env: imageVariables(image.env),
    path: image.env["PATH"] ?? null,
  };
};
