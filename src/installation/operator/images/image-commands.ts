/** `platform images`. Its implementation (images.ts) is loaded only when it is needed. */
import { command, type Command } from "../../../cli/command.ts";
import { EXIT, Failure, usageFailure } from "../../../cli/failure.ts";
import { megabytes, localTable as table, safeLine } from "../../../cli/terminal.ts";
import { quantity } from "../../../domain/counted.ts";

const NOTES = `A project chooses an image in its platform.toml:

  [environment]
  image = "NAME"

Its sandboxes then see the image's files instead of this machine's. Run the command on the service's machine, as its user and with
its settings. With several nodes, build or import the image on each node. The service can keep running.`;

/** @throws Failure */
const checkName = async (name: string): Promise<string> => {
  const { IMAGE_REFERENCE_RULE, isImageReference } = await import("../../../domain/environment/image.ts");
  if (!isImageReference(name))
    throw usageFailure(`${name} is not a valid image name. ${IMAGE_REFERENCE_RULE}`);
  return name;
};

const ready = (
  name: string,
  { digest, bytes, files }: { readonly digest: string; readonly bytes: number; readonly files: number },
) => ({
  json: JSON.stringify({ name, digest, bytes, files }),
  text: safeLine(`${name} is ready: ${digest}, ${quantity(files, "file")}, ${megabytes(bytes)}.`),
});

const importCommand = command({
  name: "images import",
  about: "Import an image for sandboxes from a file",
  takes: ["NAME", "FILE"],
  notes: `FILE is an archive of \`docker save\`, \`podman save\` or \`buildah push … oci-archive:\`, or a tar of a root file system, such as one
of \`docker export\` or \`mmdebstrap\`. It may be compressed with gzip or zstd. If the name exists, new sandboxes use the new image.

${NOTES}`,
  run: async ({ given, environment }) => {
    const name = await checkName(given.NAME);
    const { perform } = await import("../perform.ts");
    const { importArchive } = await import("./images.ts");
    return ready(name, await perform(importArchive(environment, { name, file: given.FILE })));
  },
});

/** `NAME=VALUE` texts as an object. @throws Failure */
const buildArguments = (words: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    words.map((text) => {
      const at = text.indexOf("=");
      if (at < 1) throw usageFailure(`--arg ${text}: give NAME=VALUE.`);
      return [text.slice(0, at), text.slice(at + 1)] as const;
    }),
  );

const build = command({
  name: "images build",
  about: "Build an image for sandboxes from a Dockerfile",
  takes: ["NAME", "DIRECTORY"],
  options: {
    file: { value: "FILE", about: "The Dockerfile in DIRECTORY (.platform/Dockerfile)" },
    target: { value: "STAGE", about: "Build this stage (the last one)" },
    arg: { value: "NAME=VALUE", many: true, about: "A build argument. May be given several times" },
  },
  notes: `DIRECTORY is the context: files that the Dockerfile copies. The build runs in a sandbox. It reaches only the hosts of
PLATFORM_EGRESS_ALLOW, so allow the registry of its base image and the servers of its packages. It needs root, buildah and bubblewrap.
Layers are kept for the next build.

${NOTES}`,
  run: async ({ given, options, environment, note }) => {
    const name = await checkName(given.NAME);
    const args = buildArguments(options.arg);
    const { perform } = await import("../perform.ts");
    const { buildImage } = await import("./image-build.ts");
    const wish = {
      name,
      directory: given.DIRECTORY,
      file: options.file ?? ".platform/Dockerfile",
      target: options.target ?? null,
      args,
    };
    return ready(name, await perform(buildImage(environment, wish, note)));
  },
});

const list = command({
  name: "images list",
  about: "List the images for sandboxes on this machine",
  notes: NOTES,
  run: async ({ environment }) => {
    const { perform } = await import("../perform.ts");
    const { listImages } = await import("./images.ts");
    const namedImages = await perform(listImages(environment));
    const images = namedImages.map(({ name, tree: { digest, bytes, files } }) => ({
      name,
      digest,
      bytes,
      files,
    }));
    const rows = images.map(({ name, digest, bytes, files }) => [
      name,
      digest.slice(0, "sha256:".length + 12),
      String(files),
      megabytes(bytes),
    ]);
    const text = table(
      ["NAME", "DIGEST", "FILES", "SIZE"],
      rows,
      "No images. Sandboxes see this machine's files.",
    );
    return { json: JSON.stringify({ images }), text };
  },
});

const remove = command({
  name: "images remove",
  about: "Remove an image's name",
  asks: "Remove the image? Projects that name it cannot start sessions any more.",
  takes: ["NAME"],
  notes: `Running sandboxes keep the image. Its files are deleted at the service's next start, if no name and no sandbox uses it. A project
that names it cannot start sessions any more.`,
  run: async ({ given, environment }) => {
    const { perform } = await import("../perform.ts");
    const { removeImage } = await import("./images.ts");
    if (!(await perform(removeImage(environment, given.NAME))))
      throw new Failure(EXIT.refused, "not_found", { message: `There is no image ${given.NAME}.` });
    return { json: JSON.stringify({ name: given.NAME }), text: safeLine(`${given.NAME} is removed.`) };
  },
});

const runtime = command({
  name: "images runtime",
  about: "Write what the runtime image for sandboxes in a cluster is built from",
  takes: ["DIRECTORY"],
  notes: `DIRECTORY is created. It gets a Dockerfile, and the programs of this machine and this version that every sandbox in a cluster needs:
the daemon, Node, git, a shell, and the program of PLATFORM_AGENT_COMMAND. The machine must run Linux on x86-64 with glibc. Build and push the image
with a tool of your own, and name it in PLATFORM_KUBERNETES_RUNTIME_IMAGE:

  docker build --tag images.example.com/platform/runtime:1 DIRECTORY
  docker push images.example.com/platform/runtime:1

Build it again after each upgrade of the service.`,
  run: async ({ given, environment }) => {
    const { perform } = await import("../perform.ts");
    const { writeRuntimeContext } = await import("./runtime-image.ts");
    const { directory, agents } = await perform(writeRuntimeContext(environment, given.DIRECTORY));
    const agent =
      agents.length === 0
        ? "It has no agent runtime: the images of the sandboxes must have the program of PLATFORM_AGENT_COMMAND."
        : `Its agent runtime: ${agents.join(", ")}.`;
    return {
      json: JSON.stringify({ directory, agents }),
      text: safeLine(`${directory} is ready to be built. ${agent}`),
    };
  },
});

export const imageCommands: readonly Command[] = [build, importCommand, list, remove, runtime];
