/** The adapter of each agent runtime. */
import { watchGateway } from "../gateway-calls.ts";
import type { Settings } from "../settings.ts";
import { acpAdapter } from "./acp.ts";
import { TURN_LIMITS, type RuntimeAdapter, type TurnLimits } from "./adapter.ts";
import { opencodeAdapter } from "./opencode.ts";
import { plainAdapter } from "./plain.ts";

type MakeAdapter = (layout: Settings["layout"], limits: TurnLimits) => RuntimeAdapter;

const ADAPTERS: Readonly<Record<Settings["launch"]["adapter"], MakeAdapter>> = {
  opencode: ({ runtimePort }, limits) => opencodeAdapter(runtimePort, limits, watchGateway()),
  acp: ({ workspace }, limits) => acpAdapter({ workspace, limits, gateway: watchGateway() }),
  plain: ({ runtimePort }) => plainAdapter(runtimePort),
};

export const adapterOf = ({ launch, layout }: Settings): RuntimeAdapter =>
  ADAPTERS[launch.adapter](layout, { ...TURN_LIMITS, ...launch.turnLimits });
