/** The program of one sandbox's agent runtime: the one that this node has for its runtime, or one on the PATH inside. */
import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import type { LaunchRuntime } from "../../../domain/sandbox/launch.ts";
import { lacksRuntime, placeInside, startedAt, startOfAdded } from "../../runtimes/added.ts";
import type { Installation } from "../installation.ts";
import { type InsideTree, LIBRARY, type OpenedImage, SANDBOX_PATH } from "./layout.ts";

/** The runtime of a sandbox from its start on. */
export interface OpenedRuntime {
  readonly launch: LaunchRuntime;
  /** Null if this node has none for it. */
  readonly tree: (InsideTree & { readonly digest: string }) | null;
}

/** A sandbox without an image has programs of its own there (layout.ts). */
const OWN_DIRECTORY = "/usr/local/bin";

/** Whether a sandbox has a program on its PATH. A link counts, wherever it leads. */
const isInside = (
  program: string,
  { parts }: Pick<Installation, "parts">,
  image: OpenedImage | null,
): boolean => {
  const directories = (image?.path ?? SANDBOX_PATH).split(":");
  const searchPath = image === null ? directories.filter((one) => one !== OWN_DIRECTORY) : directories;
  return (
    parts.agentBinaries.some((file) => basename(file) === program) ||
    searchPath.some(
      (directory) =>
        lstatSync(join(image?.root ?? "/", directory, program), { throwIfNoEntry: false }) !== undefined,
    )
  );
};

/**
 * A sandbox keeps the version that it is started with (tree-store.ts, M2).
 * @throws Error that says what to do, if neither the node nor the sandbox has the program
 */
export const openRuntime = async (
  installation: Pick<Installation, "runtimes" | "parts">,
  launch: LaunchRuntime,
  image: OpenedImage | null,
): Promise<OpenedRuntime> => {
  const { packaged } = launch;
  if (packaged === undefined) return { launch, tree: null };
  const { name, start } = packaged;
  const tree = await installation.runtimes.find(name);
  if (tree === null) {
    const [program = ""] = launch.command;
    if (start !== null && isInside(program, installation, image)) return { launch, tree: null };
    throw lacksRuntime(packaged, program);
  }
  await installation.runtimes.hold(tree);
  const place = placeInside(name, tree.version);
  return {
    launch: startedAt(launch, { start: startOfAdded(packaged, tree), place, node: `${LIBRARY}/node` }),
    tree: { source: tree.root, place, digest: tree.digest },
  };
};
