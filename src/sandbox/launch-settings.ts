/** The settings of a sandbox's daemon that are the same under each provider (domain/sandbox/launch.ts). */
import { launchedRuntime, type LaunchSettings, type OperatorTurnLimits } from "../domain/sandbox/launch.ts";
import type { DefaultModels } from "../domain/sandbox/model.ts";
import { launchPackages, type SandboxPackages } from "./packages/of-sandbox.ts";
import type { SandboxSpec } from "./port.ts";

export interface LaunchOptions {
  /** Absent: the daemon's own. */
  readonly turnLimits?: OperatorTurnLimits;
  /** Default models by provider. Absent: those of domain/sandbox/model.ts. */
  readonly models?: DefaultModels;
  /** Milliseconds without contact from the service after which a sandbox ends itself. */
  readonly orphanMs: number;
  /** How long a project's setup command may run, ms. */
  readonly setupTimeoutMs: number;
}

export const settingsOfSpec = (
  { turnLimits, models, orphanMs, setupTimeoutMs }: LaunchOptions,
  spec: SandboxSpec,
  packages: SandboxPackages | undefined,
) =>
  ({
    ...launchedRuntime(spec.runtime, spec.agent),
    ...(turnLimits !== undefined && { turnLimits }),
    ...(models !== undefined && { models }),
    ...(spec.providers !== undefined && { providers: spec.providers }),
    agentEnv: spec.secrets,
    ...launchPackages(packages),
    ...(spec.wip !== null && { wip: spec.wip }),
    ...(spec.wipLacks !== null && { wipLacks: spec.wipLacks }),
    ...(spec.restore && { restore: true as const }),
    ...(spec.recap !== null && { recap: spec.recap }),
    ...(spec.sessionId === null && { standby: spec.id }),
    ...(spec.hasConnectors && { hasConnectors: true as const }),
    orphanMs,
    setupTimeoutMs,
    bootDeadlineMs: spec.bootDeadlineMs,
  }) satisfies Partial<LaunchSettings>;
