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

/** What the runtimes of a project report of one model on one day, or what passed the service to a provider of the account. */
export interface DayOfModel {
  readonly day: string;
  readonly model: string;
  readonly usage: Usage;
}

/**
 * One list of both, without counting a call twice: where calls of a model passed the service on a day, these are the tokens. The runtime's
 * report of that model adds the cost alone, where the service knows no price. A runtime names its model as `provider/model`, or without the provider.
 */
export const oneCount = <P extends DayOfModel>(
  reports: readonly DayOfModel[],
  ownUsage: readonly P[],
): readonly (DayOfModel & { readonly passed: P | null })[] => {
  const isSameRow = (own: P, row: DayOfModel): boolean =>
    own.day === row.day && (own.model === row.model || own.model.endsWith(`/${row.model}`));
  const ownRows = ownUsage.map((own) => {
    const cost = reports
      .filter((row) => isSameRow(own, row))
      .reduce((sum, { usage }) => sum + usage.cost_usd, 0);
    const usage = own.usage.cost_usd > 0 ? own.usage : addUsage(own.usage, { ...NO_USAGE, cost_usd: cost });
    return { day: own.day, model: own.model, usage, passed: own };
  });
  const others = reports
    .filter((row) => !ownUsage.some((own) => isSameRow(own, row)))
    .map(({ day, model, usage }) => ({ day, model, usage, passed: null }));
  return [...ownRows, ...others].toSorted((one, other) => {
    if (one.day !== other.day) return one.day < other.day ? 1 : -1;
    return one.model < other.model ? -1 : 1;
  });
};

/** The day of an instant: `YYYY-MM-DD`, in UTC. */
export const utcDay = (now: number): string => new Date(now).toISOString().slice(0, 10);
