/** How programs of the agent's side start: their environment, and the runtime's own command. */
import type { AgentEnv } from "./env.ts";
import type { OwnSubscription } from "./subscription.ts";
import type { RuntimeAdapter } from "../adapters/adapter.ts";
import { gitEnvironment } from "../git/checkout.ts";
import { packageVariables } from "../boot/packages.ts";
import type { Launch } from "./process.ts";
import type { Settings } from "../settings.ts";

export interface AgentSide {
  readonly settings: Settings;
  readonly adapter: Pick<RuntimeAdapter, "environment" | "talk">;
  readonly agentEnv: Pick<AgentEnv, "secrets" | "variables">;
  /** Absent: the sandbox has none. */
  readonly subscription?: Pick<OwnSubscription, "held">;
  /** In place of the agent's. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
}

/** The agent's own PATH applies only after the launch prefix, whose programs are the platform's. */
const withPath = (path: string | undefined, command: readonly string[]): readonly string[] =>
  path === undefined ? command : ["env", `PATH=${path}`, ...command];

/** The project may choose the language. */
const languageVariables = ({ LANG }: Readonly<Record<string, string>>): Record<string, string> =>
  LANG === undefined ? {} : { LANG };

/**
 * A program of the agent's side, with its whole environment. The platform's variables override secrets of the same name,
 * except for LANG.
 */
export const agentLaunch = (
  { settings, adapter, agentEnv, variables = settings.launch.agent?.variables }: AgentSide,
  configDir: string,
  command: readonly string[],
): Launch => ({
  prefix: settings.launch.prefix,
  command: withPath(settings.launch.agentPath, command),
  cwd: settings.layout.workspace,
  env: {
    ...packageVariables(settings),
    ...settings.launch.imageEnv,
    ...settings.launch.runtimeVariables,
    ...agentEnv.secrets,
    ...variables,
    ...settings.injected,
    ...agentEnv.variables,
    ...settings.launch.commonEnv,
    ...languageVariables(agentEnv.secrets),
    ...gitEnvironment(settings),
    ...adapter.environment({
      configDir,
      defaults: settings.layout.runtimeDefaultsFile,
      hasConnectors: settings.launch.hasConnectors === true,
      permissions: settings.launch.permissions ?? null,
    }),
    AGENT_CONFIG_DIR: configDir,
  },
});

/** The agent runtime itself. It alone has the variables of a subscription. */
export const runtimeLaunch = (side: AgentSide, configDir: string): Launch => ({
  ...agentLaunch(
    { ...side, variables: side.subscription?.held?.variables },
    configDir,
    side.settings.launch.agentCommand,
  ),
  ...(side.adapter.talk !== null && { talk: side.adapter.talk }),
});
