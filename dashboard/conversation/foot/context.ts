/** How full the agent's context is, as far as the conversation tells. It uses no document. */
import type { Conversation } from "../reading/model.ts";
import { clock, grouped } from "../../elements/format.ts";

export interface ContextState {
  /** Null: the conversation was replaced with a summary since the agent's last call. */
  readonly tokens: number | null;
  /** How many tokens the model's context can hold. Null: not known. */
  readonly size: number | null;
  /** When the conversation was last replaced with a summary. Null: it was not, as far as it was read. */
  readonly compactedAt: string | null;
}

/** @returns null if the runtime tells nothing */
export const contextState = ({ order }: Pick<Conversation, "order">): ContextState | null => {
  const last = order.findLastIndex(({ context }) => context !== undefined);
  const compacted = order.findLastIndex(({ compacts }) => compacts === true);
  const { context } = order[last] ?? {};
  const compactedAt = order[compacted]?.created_at ?? null;
  if (compactedAt === null && context === undefined) return null;
  return compacted > last
    ? { tokens: null, size: context?.size ?? null, compactedAt }
    : { tokens: context?.tokens ?? null, size: context?.size ?? null, compactedAt };
};

/** How much of the context is full, from 0 to 1. Null: not known. */
export const fullShare = ({ tokens, size }: ContextState): number | null =>
  tokens === null || size === null || size <= 0 ? null : Math.min(1, tokens / size);

const fullWords = (state: ContextState): string => {
  const { tokens, size } = state;
  if (tokens === null) return "Context: known after the agent's next call";
  const share = fullShare(state);
  return share === null || size === null
    ? `Context: ${grouped(tokens)} tokens`
    : `Context: ${Math.round(share * 100)} % of ${grouped(size)} tokens`;
};

/** In a reader's words: how full it is, and what was replaced. */
export const contextWords = (state: ContextState): string =>
  state.compactedAt === null
    ? fullWords(state)
    : `${fullWords(state)}. What came before ${clock(state.compactedAt)} was replaced with a summary.`;
