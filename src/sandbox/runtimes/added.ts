/** A runtime that an operator has added, as a sandbox sees it, and the words where it is missing. */
import { installedAt, RUNTIMES_INSIDE } from "../../domain/runtimes/installed.ts";
import { AGENT_READABLE_DIR, type LaunchRuntime } from "../../domain/sandbox/launch.ts";

/** The directory of a version's files inside. */
export const placeInside = (name: string, version: string): string => `${RUNTIMES_INSIDE}/${name}/${version}`;

/** The start of a runtime whose files are at `place`. @param node the platform's own Node inside */
export const startedAt = (
  launch: LaunchRuntime,
  {
    packaged,
    place,
    node,
  }: { readonly packaged: LaunchRuntime["packaged"] & object } & Readonly<Record<"place" | "node", string>>,
): LaunchRuntime => {
  const files = AGENT_READABLE_DIR;
  const { command, variables } = installedAt(packaged.start, { place, node, arch: process.arch, files });
  return { ...launch, command, variables: { ...launch.variables, ...variables } };
};

/** Says what to do where neither the node nor the sandbox has a runtime's program. */
export const lacksRuntime = (name: string, program: string): Error =>
  new Error(
    `this node has no runtime ${name}. An operator adds it there with \`platform runtimes add ${name}@VERSION\`, or the project's environment brings ${program}`,
  );
