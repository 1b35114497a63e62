/** The launch file of a sandbox in a cluster (domain/sandbox/launch.ts). It also has the injected environment, with PLATFORM_TOKEN. */
import type { LaunchSettings, OperatorTurnLimits } from "../../domain/sandbox/launch.ts";
import { launchedRuntime, PROXY_VARIABLES } from "../../domain/sandbox/launch.ts";
import type { DefaultModels } from "../../domain/sandbox/model.ts";
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import { type SandboxPackages, launchPackages } from "../packages/of-sandbox.ts";
import type { SandboxSpec } from "../port.ts";
import { AGENT_BINARIES, AGENT_UID, IMAGE_ENVIRONMENT } from "./pod.ts";

export interface LaunchOptions {
  /** Absent: the daemon's own. */
  readonly turnLimits?: OperatorTurnLimits;
  readonly models?: DefaultModels;
  readonly orphanMs: number;
  readonly setupTimeoutMs: number;
}

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
      ...launchedRuntime(spec.runtime, spec.agent),
      ...(options.turnLimits !== undefined && { turnLimits: options.turnLimits }),
      // The image's programs come before the bundle's.
      agentPath: `${AGENT_BINARIES}:${USUAL_PATH}:${BUNDLE_TOOLS}`,
      imageEnvironment: {
        file: IMAGE_ENVIRONMENT,
        pathBefore: AGENT_BINARIES,
        pathAfter: `/usr/local/bin:${BUNDLE_TOOLS}`,
      },
      ...(spec.variables !== undefined && { imageEnv: spec.variables }),
      ...(options.models !== undefined && { models: options.models }),
      ...(spec.providers !== undefined && { providers: spec.providers }),
      environment: spec.environment,
      agentEnv: spec.secrets,
      commonEnv: { PATH: `${BUNDLE_TOOLS}:${USUAL_PATH}`, HOME, LANG: "C.UTF-8", ...PROXY_VARIABLES },
      ...launchPackages(packages),
      ...(spec.wip !== null && { wip: spec.wip }),
      ...(spec.wipLacks !== null && { wipLacks: spec.wipLacks }),
      ...(spec.restore && { restore: true }),
      ...(spec.recap !== null && { recap: spec.recap }),
      ...(spec.sessionId === null && { standby: spec.id }),
      ...(spec.hasConnectors && { hasConnectors: true }),
      orphanMs: options.orphanMs,
      setupTimeoutMs: options.setupTimeoutMs,
      bootDeadlineMs: spec.bootDeadlineMs,
    } satisfies LaunchSettings);
