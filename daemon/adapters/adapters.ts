/** The adapter of each agent runtime. */
import { watchGateway } from "../agent/gateway-calls.ts";
import type { Settings } from "../settings.ts";
import { acpAdapter } from "./acp/acp.ts";
import { TURN_LIMITS, type RuntimeAdapter, type TurnLimits } from "./adapter.ts";
import { opencodeAdapter } from "./opencode/opencode.ts";
import { plainAdapter } from "./plain.ts";

type MakeAdapter = (settings: Pick<Settings, "launch" | "layout">, limits: TurnLimits) => RuntimeAdapter;

const ADAPTERS: Readonly<Record<Settings["launch"]["adapter"], MakeAdapter>> = {
  opencode: ({ layout }, limits) => opencodeAdapter(layout.runtimePort, limits, watchGateway()),
  acp: ({ layout, launch }, limits) =>
    acpAdapter({
      workspace: layout.workspace,
      limits,
      gateway: watchGateway(),
      allowsAll: launch.permissions === "allow",
    }),
  plain: ({ layout }) => plainAdapter(layout.runtimePort),
};

export const makeAdapter = ({ launch, layout }: Settings): RuntimeAdapter =>
  ADAPTERS[launch.adapter]({ launch, layout }, { ...TURN_LIMITS, ...launch.turnLimits });
