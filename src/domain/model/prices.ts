/**
 * What models cost. An owner's own price of a model comes first, then this table. A model in neither has no price: no one is guessed.
 *
 * The table has the makers' usual prices of 2026-11-30, for prompts of usual length and without discounts.
 */
import * as Schema from "effect/Schema";

/** The tokens of calls. */
export interface CountedTokens {
  /** Tokens of the prompts, with the cached ones. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

/** Dollars for a million tokens. The most is far above any model's. */
const dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }));
export const Price = Schema.Struct({ input: dollars, cached: dollars, output: dollars });
export type Price = typeof Price.Type;

/** Own prices of a provider's models, by the model's id. */
export type Prices = Readonly<Record<string, Price>>;

type Row = readonly [ids: readonly string[], input: number, cached: number, output: number];

const TABLE: readonly Row[] = [
  [["claude-fable-5-1"], 10, 0.25, 50],
  [["claude-fable-5"], 10, 1, 50],
  [["claude-opus-5-5"], 4, 0.2, 20],
  [["claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5"], 5, 0.5, 25],
  [["claude-opus-4-1", "claude-opus-4"], 15, 1.5, 75],
  [["claude-sonnet-5-5"], 2, 0.1, 10],
  [["claude-sonnet-5"], 2, 0.2, 10],
  [["claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4", "claude-3-7-sonnet"], 3, 0.3, 15],
  [["claude-haiku-5-5"], 0.1, 0.01, 0.5],
  [["claude-haiku-4-5"], 1, 0.1, 5],
  [["claude-3-5-haiku"], 0.8, 0.08, 4],
  [["gpt-5.6-sol", "gpt-5.5"], 5, 0.5, 30],
  [["gpt-5.6-terra", "gpt-5.4"], 2.5, 0.25, 15],
  [["gpt-5.6-luna"], 1, 0.1, 6],
  [["gpt-5.4-mini"], 0.75, 0.075, 4.5],
  [["gpt-5.4-nano"], 0.2, 0.02, 1.25],
  [["gpt-5.3-codex", "gpt-5.2", "gpt-5.2-codex"], 1.75, 0.175, 14],
  [["gpt-5.1", "gpt-5.1-codex", "gpt-5.1-codex-max", "gpt-5", "gpt-5-codex"], 1.25, 0.125, 10],
  [["gpt-5.1-codex-mini", "gpt-5-mini"], 0.25, 0.025, 2],
  [["gpt-5-nano"], 0.05, 0.005, 0.4],
  [["gpt-4.1"], 2, 0.5, 8],
  [["gpt-4.1-mini"], 0.4, 0.1, 1.6],
  [["gpt-4.1-nano"], 0.1, 0.025, 0.4],
  [["gpt-4o"], 2.5, 1.25, 10],
  [["gpt-4o-mini"], 0.15, 0.075, 0.6],
  [["o4-mini"], 1.1, 0.275, 4.4],
  [["gemini-3.8-flash", "gemini-3.7-flash"], 0.75, 0.075, 3.75],
  [["gemini-3.6-flash"], 1.5, 0.15, 7.5],
  [["gemini-3.5-flash"], 1.5, 0.15, 9],
  [["gemini-3.5-flash-lite"], 0.3, 0.03, 2.5],
  [["gemini-3.1-pro", "gemini-3-pro"], 2, 0.2, 12],
  [["gemini-3.1-flash-lite"], 0.25, 0.025, 1.5],
  [["gemini-3-flash"], 0.5, 0.05, 3],
  [["gemini-2.5-pro"], 1.25, 0.125, 10],
  [["gemini-2.5-flash"], 0.3, 0.03, 2.5],
  [["gemini-2.5-flash-lite"], 0.1, 0.01, 0.4],
];

const KNOWN: ReadonlyMap<string, Price> = new Map(
  TABLE.flatMap(([ids, input, cached, output]) => ids.map((id) => [id, { input, cached, output }] as const)),
);

/** What makers put behind a name without another price. */
const VERSION = /-(?:latest|preview|\d{4}-?\d{2}-?\d{2})$/;

/** The name of a model in a table of known ones. A router has the maker before the name, and writes a version with a dot. */
export const plainName = (model: string): string => {
  const name = (model.split("/").at(-1) ?? "").replace(VERSION, "");
  return name.startsWith("claude-") ? name.replaceAll(".", "-") : name;
};

/** The price of a model. Null if none is known. @param model its id at the provider */
export const modelPrice = (model: string, own: Prices): Price | null =>
  (Object.hasOwn(own, model) ? own[model] : undefined) ?? KNOWN.get(plainName(model)) ?? null;

/** What tokens cost, in billionths of a dollar. A dollar for a million tokens is a thousand of them for one. */
export const tokenCost = ({ input, cached, output }: CountedTokens, price: Price): number =>
  Math.round(1000 * ((input - cached) * price.input + cached * price.cached + output * price.output));

/** The dearer one of the model that a call asked for and the one that answered: a request can name two. */
export const callPrice = (models: readonly (string | null)[], own: Prices): Price | null => {
  const prices = models.flatMap((model) => (model === null ? [] : (modelPrice(model, own) ?? [])));
  return prices.toSorted((one, other) => other.output - one.output)[0] ?? null;
};
