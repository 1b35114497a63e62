/**
 * What the service itself knows of a model, for people who choose one: its price, and how many tokens its context holds. A running agent's
 * runtime may know more models. The sizes are those of 2026-11-30.
 */
import type { AccountProvider } from "../sandbox/account-provider.ts";
import { modelId, modelProvider } from "../sandbox/model.ts";
import { type Price, plainName, modelPrice } from "./prices.ts";

const MILLION = 1_000_000;

const SIZES: readonly (readonly [size: number, ids: readonly string[]])[] = [
  [
    MILLION,
    [
      "claude-fable-5-1",
      "claude-fable-5",
      "claude-opus-5-5",
      "claude-opus-5",
      "claude-opus-4-8",
      "claude-opus-4-7",
      "claude-opus-4-6",
      "claude-sonnet-5-5",
      "claude-sonnet-5",
      "claude-sonnet-4-6",
      "claude-sonnet-4-5",
    ],
  ],
  [200_000, ["claude-opus-4-5", "claude-haiku-4-5"]],
  [1_050_000, ["gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna", "gpt-5.5", "gpt-5.4"]],
  [
    400_000,
    [
      "gpt-5.4-mini",
      "gpt-5.4-nano",
      "gpt-5.3-codex",
      "gpt-5.2",
      "gpt-5.1",
      "gpt-5",
      "gpt-5-mini",
      "gpt-5-nano",
    ],
  ],
  [1_047_576, ["gpt-4.1", "gpt-4.1-mini"]],
  [128_000, ["gpt-4o", "gpt-4o-mini"]],
  [
    1_048_576,
    [
      "gemini-3.8-flash",
      "gemini-3.7-flash",
      "gemini-3.6-flash",
      "gemini-3.5-flash",
      "gemini-3.5-flash-lite",
      "gemini-3.1-pro",
      "gemini-3.1-flash-lite",
      "gemini-3-flash",
      "gemini-2.5-pro",
      "gemini-2.5-flash",
      "gemini-2.5-flash-lite",
    ],
  ],
];

const KNOWN: ReadonlyMap<string, number> = new Map(
  SIZES.flatMap(([size, ids]) => ids.map((id) => [id, size] as const)),
);

/** Absent: it is not known. */
interface KnownFacts {
  readonly price?: Price;
  /** Tokens. */
  readonly context?: number;
}

/**
 * The facts about a model.
 *
 * @param model `provider/model`, or a runtime's own name, of which nothing is known
 * @param providers those that the session uses. The own price of one comes first.
 */
export const knownFacts = (model: string, providers: readonly AccountProvider[]): KnownFacts => {
  if (!model.includes("/")) return {};
  const id = modelId(model);
  const own = providers.find(({ name }) => name === modelProvider(model))?.prices ?? {};
  const price = modelPrice(id, own);
  const context = KNOWN.get(plainName(id));
  return { ...(price !== null && { price }), ...(context !== undefined && { context }) };
};
