/** Calls of models that sessions of a world make. */
import * as Effect from "effect/Effect";
import type { CallEstimate, SpendingCaller, SpendingSession } from "../../../src/domain/sandbox/spend.ts";
import { Spend } from "../../../src/features/spend/ports/spend.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";

/** A session as the one that calls. @param isLimited whether its account had limits when the call began */
const callerOf = Effect.fnUntraced(function* (sessionId: string, isLimited: boolean) {
  const { get } = yield* Sessions;
  const session = yield* get(sessionId);
  if (session === null) throw new Error(`no session ${sessionId}`);
  const above: SpendingSession[] = [];
  for (let id = session.parentSessionId; id !== null;) {
    const next = yield* get(id);
    if (next !== null) above.push(next);
    id = next?.parentSessionId ?? null;
  }
  return { accountId: session.accountId, sessions: [session, ...above], isLimited } satisfies SpendingCaller;
});

interface SessionCall extends Omit<CallEstimate, "caller"> {
  readonly sessionId: string;
  /** Whether its account had limits when the call began. Absent: it had. */
  readonly isLimited?: boolean;
  readonly now: number;
}

/** Reserves a call of a session. */
export const reserveFor = Effect.fnUntraced(function* ({
  sessionId,
  isLimited = true,
  ...call
}: SessionCall) {
  return yield* (yield* Spend).reserve({ ...call, caller: yield* callerOf(sessionId, isLimited) });
});
