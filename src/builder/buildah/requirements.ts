/** What this machine needs, so that images can be built on it with buildah. */
import { readFileSync } from "node:fs";
import { mapHasUids } from "../../domain/sandbox/host-uids.ts";
import { findProgram } from "../../sandbox/machine/tools.ts";
import { knownArchitecture } from "../../sandbox/machine/isolation/seccomp.ts";
import { BLOCK_UIDS } from "./layer-stores.ts";

export interface BuildTools {
  readonly sh: string;
  readonly unshare: string;
  readonly setpriv: string;
  readonly mount: string;
  readonly bwrap: string;
  readonly tar: string;
  readonly buildah: string;
}

/** Programs, with the packages that contain them. */
const PROGRAMS: Readonly<Record<keyof BuildTools, string>> = {
  sh: "dash",
  unshare: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
  bwrap: "bubblewrap",
  tar: "tar",
  buildah: "buildah",
};

/**
 * The programs for a build, or why this machine cannot build.
 * @param path the service's own PATH
 * @param firstUid of the block of user ids
 */
export const findBuildTools = (
  path: string,
  firstUid: number,
): { readonly tools: BuildTools } | { readonly problem: string } => {
  if (process.geteuid?.() !== 0)
    return { problem: "the service does not run as root, and builds need user ids of their own" };
  if (knownArchitecture(process.arch) === null)
    return { problem: `builds do not work on ${process.arch}, because no seccomp filter exists for it` };
  const programs: Partial<Record<keyof BuildTools, string>> = {};
  const missing = new Set<string>();
  for (const [name, source] of Object.entries(PROGRAMS)) {
    const program = findProgram(name, path);
    if (program === null) missing.add(source);
    else programs[name as keyof BuildTools] = program;
  }
  // buildah runs inside, where only /usr is.
  if (programs.buildah !== undefined && !programs.buildah.startsWith("/usr/")) missing.add(PROGRAMS.buildah);
  if (missing.size > 0) return { problem: `these packages are not installed: ${[...missing].join(", ")}` };
  const blocks = (["uid_map", "gid_map"] as const).every((file) =>
    mapHasUids(readFileSync(`/proc/self/${file}`, "utf8"), firstUid, BLOCK_UIDS),
  );
  if (!blocks)
    return { problem: `the service's user namespace lacks the ${BLOCK_UIDS} user ids from ${firstUid} on` };
  return { tools: programs as BuildTools };
};
