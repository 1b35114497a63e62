/** Tiers of accounts, with the number of live sessions that each may have (api.md 2; spec.md 8). */
import * as Result from "effect/Result";
import { parseJson } from "../../ground/record.ts";

export const TIERS = ["free", "pro", "enterprise"] as const;
export type Tier = (typeof TIERS)[number];

/** How many sessions may be provisioning or running at the same time, by tier. */
export type TierCaps = Readonly<Record<Tier, number>>;

export const DEFAULT_TIER_CAPS: TierCaps = { free: 50, pro: 200, enterprise: 2000 };
/** The highest cap that an operator may set. A higher number is a typing error. */
const TIER_CAP_LIMIT = 1_000_000;

export const isTier = (name: unknown): name is Tier => TIERS.some((tier) => tier === name);

/**
 * Reads PLATFORM_TIER_CAPS: a JSON object from tier to cap, for tiers whose default is to change.
 *
 * @returns all caps, or the expected form, as it stands after "expected".
 */
export const parseTierCaps = (text: string): Result.Result<TierCaps, string> => {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return Result.fail('a JSON object such as {"free": 50, "pro": 200}');
  }
  const caps: Record<Tier, number> = { ...DEFAULT_TIER_CAPS };
  for (const [tier, cap] of Object.entries(value) as [string, unknown][]) {
    if (!isTier(tier))
      return Result.fail(`only the tiers ${TIERS.join(", ")}, without ${JSON.stringify(tier)}`);
    if (typeof cap !== "number" || !Number.isInteger(cap) || cap < 1 || cap > TIER_CAP_LIMIT) {
      return Result.fail(`the cap of tier ${tier} to be a whole number from 1 to ${TIER_CAP_LIMIT}`);
    }
    caps[tier] = cap;
  }
  return Result.succeed(caps);
};

/** Reads PLATFORM_LLM_TIERS: a JSON list of the tiers that have the managed model gateway. */
export const parseTierList = (text: string): Result.Result<readonly Tier[], string> => {
  const value = parseJson(text);
  return Array.isArray(value) && value.every(isTier)
    ? Result.succeed(value)
    : Result.fail(`a JSON list of ${TIERS.join(", ")}, such as ["pro"]`);
};
