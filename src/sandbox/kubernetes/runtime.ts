/**
 * The content of the runtime image: `/opt/platform` as every sandbox in the cluster sees it. The bundle has this machine's
 * programs (../bundle/bundle.ts); beside them are the daemon, the link and the command line.
 */
import { chmod, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { machineArchitecture } from "../machine/isolation/seccomp.ts";
import { nativeProgram } from "../native/programs.ts";

export interface RuntimeParts {
  /** The runtime bundle's directory. */
  readonly bundle: string;
  /** The daemon and the `platform` command, each as one JavaScript file. */
  readonly daemon: string;
  readonly commandLine: string;
}

const inDaemon = (name: string): string =>
  fileURLToPath(new URL(`../../../daemon/programs/${name}`, import.meta.url));

/** The users of a sandbox, for programs that ask for a name. */
const USERS = {
  passwd: [
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin",
    "platform:x:1000:1000:platform daemon:/opt/platform/home:/bin/sh",
    "agent:x:1001:1001:agent:/opt/platform/home:/bin/sh",
    "",
  ].join("\n"),
  group: ["root:x:0:", "platform:x:1000:", "agent:x:1001:", ""].join("\n"),
};

/** @param root becomes the image's root: `opt/platform` is made in it */
export const writeRuntime = async (
  { bundle, daemon, commandLine }: RuntimeParts,
  root: string,
): Promise<void> => {
  const platform = join(root, "opt/platform");
  const files: readonly (readonly [string, string])[] = [
    ...["gnu", "tools", "git-core"].map((name) => [join(bundle, name), `lib/${name}`] as const),
    [join(bundle, "agent"), "bin"],
    [inDaemon("forwarder.cjs"), "lib/forwarder.cjs"],
    [inDaemon("link.cjs"), "lib/link.cjs"],
    [daemon, "bin-own/platform-agent"],
    [inDaemon("entrypoint.sh"), "bin-own/platform-entrypoint"],
    [commandLine, "bin-own/platform"],
  ];
  for (const [source, place] of files) {
    const target = join(platform, place);
    // eslint-disable-next-line no-await-in-loop -- large files: one at a time
    await mkdir(dirname(target), { recursive: true });
    // eslint-disable-next-line no-await-in-loop -- large files: one at a time
    await cp(source, target, { recursive: true, verbatimSymlinks: true });
  }
  await writeFile(join(platform, "lib/terminal"), nativeProgram("terminal", machineArchitecture()), {
    mode: 0o755,
  });
  // A copy would cost each Pod 120 MB.
  await symlink("tools/node", join(platform, "lib/node"));
  await Promise.all(["etc", "home"].map((name) => mkdir(join(platform, name), { recursive: true })));
  await Promise.all(
    Object.entries(USERS).map(([name, content]) => writeFile(join(platform, "etc", name), content)),
  );
  await Promise.all(
    ["platform-agent", "platform-entrypoint", "platform"].map((name) =>
      chmod(join(platform, "bin-own", name), 0o755),
    ),
  );
};
