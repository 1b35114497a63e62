/** Where sandboxes see a runtime that was added to their node, and what starts it there. */
import type { AddedStart } from "./runtime.ts";

/**
 * Below it, `<name>/<version>` has the packages: `own` the runtime's, `beside` the further one, each in `node_modules`. The files of an
 * archive are in `own` itself.
 */
export const RUNTIMES_INSIDE = "/opt/platform/runtimes";

/** The directories of a runtime's files, as the operator's command makes them. */
export const PACKAGE_PARTS = ["own", "beside"] as const;

/** The processor, as Node and as GNU name it. */
const MACHINES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The processor, as GNU names it. @param arch as Node does */
export const machineName = (arch: string): string => MACHINES[arch] ?? arch;

/** A version of npm: it becomes a directory's name. */
const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;

export const isExactVersion = (text: string): boolean => VERSION.test(text);

/** Whether a text can name a runtime: it becomes a directory's name. */
export const isRuntimeName = (text: string): boolean => /^[a-z][a-z0-9-]{0,63}$/.test(text);

/** Reads `NAME@VERSION`. Null if it is neither that, nor an exact version. */
export const parseNamedVersion = (
  text: string,
): { readonly name: string; readonly version: string } | null => {
  const [name = "", version = "", ...rest] = text.split("@");
  return isRuntimeName(name) && isExactVersion(version) && rest.length === 0 ? { name, version } : null;
};

/** Replaces each `{name}` that the record has. Other braces stay. */
export const fillHoles = (text: string, holes: Readonly<Record<string, string>>): string =>
  text.replace(/\{([a-z]+)\}/g, (hole, name: string) => holes[name] ?? hole);

/**
 * The start of a runtime that a node has.
 *
 * @param at its directory inside, the platform's own Node there, the processor as Node names it, and the directory of its record's files
 */
export const installedAt = (
  { command, variables }: AddedStart,
  { place, node, arch, files }: Readonly<Record<"place" | "node" | "arch" | "files", string>>,
): AddedStart => {
  const parts = PACKAGE_PARTS.map((part) => [part, `${place}/${part}/node_modules`] as const);
  const holes = { place, node, arch, files, machine: machineName(arch), ...Object.fromEntries(parts) };
  return {
    command: command.map((word) => fillHoles(word, holes)),
    variables: Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [name, fillHoles(value, holes)]),
    ),
  };
};
