/**
 * The package registries of one sandbox. They are decided at its start and kept in its record: it asks for packages over plain
 * HTTP, so with other settings its credentials for them would leave the service without TLS.
 */
import * as Schema from "effect/Schema";
import type { LaunchSettings } from "../../domain/sandbox/launch.ts";
import { npmAddress, PYPI_INDEX, type PackageSources } from "../../domain/environment/packages.ts";
import { mayUse } from "../egress-policy.ts";
import type { SandboxSpec } from "../port.ts";

/** As a record has it. Null if it does not use that registry's cache. */
export const SandboxPackages = Schema.Struct({
  npm: Schema.NullOr(Schema.String),
  pypi: Schema.NullOr(Schema.String),
  projectId: Schema.String,
});
export type SandboxPackages = typeof SandboxPackages.Type;

/** The registries that a new sandbox uses: those whose hosts it may reach. Part of its record. */
export const sandboxPackages = (
  sources: PackageSources | undefined,
  { egressAllow, environment }: Pick<SandboxSpec, "egressAllow" | "environment">,
): { readonly packages?: SandboxPackages } => {
  const projectId = environment["PLATFORM_PROJECT_ID"];
  if (sources === undefined || projectId === undefined) return {};
  const policy = { allow: egressAllow, secretNames: [], serviceUrl: null, llmUpstream: null };
  const open = (source: string | null): string | null =>
    source !== null && mayUse(policy, source) ? source : null;
  const packages = { npm: open(sources.npm), pypi: open(sources.pypi), projectId };
  return packages.npm === null && packages.pypi === null ? {} : { packages };
};

/** The part of the launch settings. @param packages of the sandbox's record. Absent: none */
export const launchPackages = (packages: SandboxPackages | undefined): Pick<LaunchSettings, "packages"> =>
  packages === undefined
    ? {}
    : {
        packages: {
          npm: packages.npm === null ? null : npmAddress(packages.npm),
          pypi: packages.pypi === null ? null : PYPI_INDEX,
        },
      };
