/** A runtime that an operator has added, as a sandbox sees it, and the words where it is missing. */
import { installedAt, RUNTIMES_INSIDE } from "../../domain/runtimes/installed.ts";
import type { AddedStart } from "../../domain/runtimes/runtime.ts";
import { AGENT_READABLE_DIR, type LaunchRuntime } from "../../domain/sandbox/launch.ts";

/** The directory of a version's files inside. */
export const placeInside = (name: string, version: string): string => `${RUNTIMES_INSIDE}/${name}/${version}`;

/** The start of a runtime whose files are at `place`. @param node the platform's own Node inside */
export const startedAt = (
  launch: LaunchRuntime,
  { start, place, node }: { readonly start: AddedStart } & Readonly<Record<"place" | "node", string>>,
): LaunchRuntime => {
  const files = AGENT_READABLE_DIR;
  const { command, variables } = installedAt(start, { place, node, arch: process.arch, files });
  return { ...launch, command, variables: { ...launch.variables, ...variables } };
};

/** The start of a runtime on its node. Its record says it, or its files do. @throws Error if neither does */
export const startOfAdded = (
  { name, start }: LaunchRuntime["packaged"] & object,
  added: { readonly start?: AddedStart },
): AddedStart => {
  const command = start ?? added.start;
  if (command === undefined) throw lacksRuntime({ name, start }, "");
  return command;
};

/** Says what to do where neither the node nor the sandbox has a runtime's program. @param program the one on the PATH */
export const lacksRuntime = ({ name, start }: LaunchRuntime["packaged"] & object, program: string): Error =>
  new Error(
    `this node has no runtime ${name}. An operator adds it there with \`platform runtimes add ${
      start === null
        ? `${name} --registry REGISTRY\``
        : `${name}@VERSION\`, or the project's environment brings ${program}`
    }`,
  );
