/** The adapter of each agent runtime. */
import { watchGateway } from "../agent/gateway-calls.ts";
import type { Settings } from "../settings.ts";
import { acpAdapter } from "./acp/acp.ts";
import { TURN_LIMITS, type RuntimeAdapter, type TurnLimits } from "./adapter.ts";
import type { ToolServer } from "./acp/agent.ts";
import { GATEWAY } from "./opencode/gateway.ts";
import { opencodeAdapter } from "./opencode/opencode.ts";
import { plainAdapter } from "./plain.ts";

type MakeAdapter = (
  settings: Pick<Settings, "launch" | "layout" | "apiUrl" | "injected">,
  limits: TurnLimits,
) => RuntimeAdapter;

/** The gateway to tools, for a runtime that hears of servers by its protocol. */
const toolGateway = ({ launch, apiUrl, injected }: Parameters<MakeAdapter>[0]): ToolServer | null => {
  const { PLATFORM_PROJECT_ID: project, PLATFORM_EXECUTOR_TOKEN: token } = injected;
  if (launch.takesServers !== true || launch.hasConnectors !== true) return null;
  if (project === undefined || token === undefined) return null;
  return { name: GATEWAY, url: `${apiUrl}/projects/${project}/executor/mcp`, token };
};

const ADAPTERS: Readonly<Record<Settings["launch"]["adapter"], MakeAdapter>> = {
  opencode: ({ layout }, limits) => opencodeAdapter(layout.runtimePort, limits, watchGateway()),
  acp: (settings, limits) =>
    acpAdapter({
      workspace: settings.layout.workspace,
      tools: toolGateway(settings),
      limits,
      gateway: watchGateway(),
      allowsAll: settings.launch.permissions === "allow",
      ...(settings.launch.plan !== undefined && { planMode: settings.launch.plan.mode }),
      ...(settings.launch.planTitle !== undefined && { planTitle: settings.launch.planTitle }),
      keepsRecord: settings.launch.history !== undefined,
    }),
  plain: ({ layout }) => plainAdapter(layout.runtimePort),
};

export const makeAdapter = (settings: Settings): RuntimeAdapter => {
  const { adapter, turnLimits } = settings.launch;
  return ADAPTERS[adapter](settings, { ...TURN_LIMITS, ...turnLimits });
};
