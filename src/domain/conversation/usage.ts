/** Sums of what models used. Dollars are rounded to a billionth, so that no error adds up. */
import { NO_USAGE, type Usage } from "./conversation.ts";

const NANO = 1_000_000_000;
const dollars = (amount: number): number => Math.round(amount * NANO) / NANO;

/** Both together. */
export const addUsage = (a: Usage, b: Usage): Usage => ({
  input_tokens: a.input_tokens + b.input_tokens,
  output_tokens: a.output_tokens + b.output_tokens,
  cached_tokens: a.cached_tokens + b.cached_tokens,
  cost_usd: dollars(a.cost_usd + b.cost_usd),
});

/** `after` without `before`. Null is no usage. */
export const usageSince = (before: Usage | null, after: Usage | null): Usage => {
  const [from, to] = [before ?? NO_USAGE, after ?? NO_USAGE];
  return {
    input_tokens: to.input_tokens - from.input_tokens,
    output_tokens: to.output_tokens - from.output_tokens,
    cached_tokens: to.cached_tokens - from.cached_tokens,
    cost_usd: dollars(to.cost_usd - from.cost_usd),
  };
};

/** The day of an instant: `YYYY-MM-DD`, in UTC. */
export const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10);
