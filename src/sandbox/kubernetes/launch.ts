/** The launch file of a sandbox in a cluster (domain/sandbox/launch.ts). It also has the injected environment, with PLATFORM_TOKEN. */
import { type LaunchSettings, PROXY_VARIABLES } from "../../domain/sandbox/launch.ts";
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import { type LaunchOptions, settingsOfSpec } from "../launch-settings.ts";
import type { SandboxPackages } from "../packages/of-sandbox.ts";
import type { SandboxSpec } from "../port.ts";
import { AGENT_BINARIES, AGENT_UID, IMAGE_ENVIRONMENT } from "./pod.ts";

const USUAL_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const HOME = "/opt/platform/home";

/** The agent is another user than the daemon, and has no capability. */
const AGENT_PREFIX = [
  "setpriv",
  "--reuid",
  String(AGENT_UID),
  "--regid",
  String(AGENT_UID),
  "--clear-groups",
  "--no-new-privs",
  "--inh-caps=-all",
  "--ambient-caps=-all",
  "--bounding-set=-all",
  "--",
];

export const launchText =
  (options: LaunchOptions) =>
  (spec: SandboxSpec, packages: SandboxPackages | undefined): string =>
    JSON.stringify({
      prefix: AGENT_PREFIX,
      ...settingsOfSpec(options, spec, packages),
      // The image's programs come before the bundle's.
      agentPath: `${AGENT_BINARIES}:${USUAL_PATH}:${BUNDLE_TOOLS}`,
      imageEnvironment: {
        file: IMAGE_ENVIRONMENT,
        pathBefore: AGENT_BINARIES,
        pathAfter: `/usr/local/bin:${BUNDLE_TOOLS}`,
      },
      ...(spec.variables !== undefined && { imageEnv: spec.variables }),
      environment: spec.environment,
      commonEnv: { PATH: `${BUNDLE_TOOLS}:${USUAL_PATH}`, HOME, LANG: "C.UTF-8", ...PROXY_VARIABLES },
    } satisfies LaunchSettings);
