/** What a conversation says when four fifths of a limit are spent. Both adapters write it with the call that spends them. */
import { SERVICE } from "../../../domain/conversation/conversation.ts";
import { derivedUuid } from "../../../domain/ids.ts";
import { limitNears, type LimitState, type SpendCount } from "../../../domain/sandbox/spend.ts";
import { countKey } from "./limits.ts";

interface Near {
  readonly sessionId: string;
  readonly count: SpendCount;
  readonly limit: LimitState;
  readonly now: number;
}

/** The note of the service. Who writes it has marked that it is told. */
export const nearNote = ({ sessionId, count, limit, now }: Near) => ({
  sessionId,
  id: derivedUuid(sessionId, `spend ${countKey(count)} ${limit.unit} ${limit.amount} ${now}`),
  text: limitNears(limit),
  author: SERVICE,
  at: now,
});
