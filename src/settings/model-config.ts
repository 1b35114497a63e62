/** What config.ts needs of the settings of models. */
import type { OperatorTurnLimits } from "../domain/sandbox/launch.ts";
import {
  GATEWAY_PROVIDER,
  parseDefaultModels,
  parseModelId,
  type DefaultModels,
} from "../domain/sandbox/model.ts";
import { parseTierList } from "../domain/person/tier.ts";
import type { SettingReader } from "./setting-reader.ts";

/** The managed gateway of models. */
export interface GatewaySettings {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly tiers: readonly string[];
}

/**
 * The managed gateway is on if its URL is set. Its tiers are a JSON list, empty by default. Without the gateway they have
 * no effect, but their form is checked.
 */
export const readGateway = (read: SettingReader): GatewaySettings | null => {
  const baseUrl = read.url("PLATFORM_LLM_BASE_URL");
  const tiers = read.parsed("PLATFORM_LLM_TIERS", parseTierList);
  if (baseUrl === null) return null;
  return { baseUrl, apiKey: read.text("PLATFORM_LLM_API_KEY") ?? "", tiers };
};

/** PLATFORM_LLM_MODEL sets the gateway's model. PLATFORM_DEFAULT_MODELS sets those of providers whose key is a secret. */
export const readDefaultModels = (read: SettingReader): DefaultModels => {
  const models = read.parsed("PLATFORM_DEFAULT_MODELS", parseDefaultModels) ?? {};
  const gateway = read.parsed("PLATFORM_LLM_MODEL", parseModelId);
  return gateway === null ? models : { ...models, [GATEWAY_PROVIDER]: gateway };
};

export interface TurnSettings {
  /** PLATFORM_MAX_TURN_MS. */
  readonly maxTurnMs: number;
  /** What the daemon of each sandbox ends a turn for. */
  readonly turnLimits: OperatorTurnLimits;
}

export const readTurns = (read: SettingReader): TurnSettings => {
  const maxTurnMs = read.duration("PLATFORM_MAX_TURN_MS");
  const modelSilenceMs = read.duration("PLATFORM_MODEL_SILENCE_MS");
  return { maxTurnMs, turnLimits: { turnMs: maxTurnMs, modelSilenceMs } };
};
