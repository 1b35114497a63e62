/** A session's agent in the launch settings of every provider. */
import * as Schema from "effect/Schema";
import { expect, it } from "vitest";
import { LaunchSettings } from "../../src/domain/sandbox/launch.ts";
import { launchText } from "../../src/sandbox/kubernetes/launch.ts";
import { trialSpec } from "../../src/sandbox/kubernetes/trial.ts";
import { launchSettings } from "../../src/sandbox/machine/boot/boot.ts";
import type { Installation } from "../../src/sandbox/machine/installation.ts";
import type { SandboxRecord } from "../../src/sandbox/machine/disk/run-directory.ts";
import type { SandboxSpec } from "../../src/sandbox/port.ts";

const OPTIONS = { orphanMs: 1, setupTimeoutMs: 1 };

const decode = Schema.decodeUnknownSync(LaunchSettings);

/** On this machine and in Docker, and in a cluster. */
const PROVIDERS: Readonly<Record<string, (spec: SandboxSpec) => LaunchSettings>> = {
  machine: (spec) =>
    // Only what these settings ask for.
    launchSettings(
      { options: OPTIONS, isolation: { agentPrefix: () => [] } } as unknown as Installation,
      spec,
      {
        record: { uidBase: null } as unknown as SandboxRecord,
        image: null,
      },
    ),
  cluster: (spec) => decode(JSON.parse(launchText(OPTIONS)(spec, undefined))),
};

it.each(Object.entries(PROVIDERS))(
  "has the session's own runtime, its variables and its agent: %s",
  (_, settings) => {
    const agent = { mode: "plan", instructions: "review.md", variables: { ANTHROPIC_MODEL: "opus" } };
    const runtime = {
      adapter: "acp",
      command: ["claude-agent-acp"],
      variables: { ENABLE_TOOL_SEARCH: "false" },
      permissions: "ask",
    } as const;
    const given = settings({ ...trialSpec("one", []), runtime, agent });
    expect(decode(given)).toMatchObject({
      adapter: "acp",
      agentCommand: ["claude-agent-acp"],
      runtimeVariables: { ENABLE_TOOL_SEARCH: "false" },
      permissions: "ask",
      agent,
    });
  },
);

it.each(Object.entries(PROVIDERS))("names no agent without a table: %s", (_, settings) => {
  const given = Object.keys(settings(trialSpec("one", [])));
  for (const key of ["runtimeVariables", "permissions", "agent"]) expect(given).not.toContain(key);
});
