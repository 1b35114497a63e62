/**
 * Where the core sends a call that a person must approve. The feature `approvals` fills this port.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { NewCall } from "../../store/ports/connectors/executor-calls.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { AgentCaller, AgentResult, Arguments } from "./executor-decision.ts";

/** Hears after how many ms a caller still waits. */
export type TellProgress = (waitedMs: number) => Effect.Effect<void>;

export class CallApproval extends Context.Service<
  CallApproval,
  {
    /** Stores a call that waits for a person, and waits for its result. */
    readonly ask: (
      row: NewCall,
      args: Arguments,
      tell: TellProgress,
    ) => Effect.Effect<AgentResult, StoreError>;
    /** The state or the result of a call of the caller's session. */
    readonly result: (caller: AgentCaller, id: string) => Effect.Effect<AgentResult, StoreError>;
  }
>()("platform/services/CallApproval") {}
