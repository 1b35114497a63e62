/**
 * Calls of the platform's own tools, on the record of calls beside those of connectors (executor.ts X2, X3, X5). They stand there
 * as calls of the connector `platform`.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { RESERVED_SLUG } from "../../domain/connector/connector.ts";
import { ExecutorCalls, type CallEnd } from "../../store/ports/connectors/executor-calls.ts";
import { projectRedactor } from "../projects/project-secrets.ts";
import {
  CALL_LIMITS,
  newRow,
  onRecord,
  textResult,
  type AgentCaller,
  type AgentResult,
  type Arguments,
} from "./executor-decision.ts";
import { refusedByLimit, write } from "./executor-outcome.ts";

/** What the rule of a call's row says: no rule of the manifest decides, but what the session's token may do. */
const RULE = "token";

interface OwnCall {
  readonly caller: AgentCaller;
  /** The tool's name without the slug. */
  readonly tool: string;
  readonly given: Arguments;
  /** The address of the service, for the row. */
  readonly origin: string;
}

/** What the API answered: its status, and what the agent reads. */
interface Answered {
  readonly status: number;
  readonly result: AgentResult;
}

interface OwnOutcome {
  readonly end: Omit<CallEnd, "now">;
  readonly result: AgentResult;
}

const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);

const toOutcome = (exit: Exit.Exit<Answered>, id: string): OwnOutcome => {
  if (Exit.isFailure(exit)) {
    const message = "The agent or its session ended during the call. It may have been performed.";
    const end = { outcome: "unknown" as const, message, upstreamStatus: null, resultBytes: null };
    return { end, result: textResult(onRecord(message, id), true) };
  }
  const { status, result } = exit.value;
  const text = result.content.map((part) => (part as { readonly text: string }).text).join("\n");
  return {
    end: {
      outcome: result.isError ? (REFUSALS.has(status) ? "denied" : "error") : "ok",
      message: result.isError ? text : null,
      upstreamStatus: status,
      resultBytes: Buffer.byteLength(text),
    },
    result,
  };
};

const rowFor = Effect.fnUntraced(function* (call: OwnCall) {
  const secrets = yield* projectRedactor(call.caller.projectId);
  return yield* newRow({ ...call, secrets }, callFields(call));
});

const callFields = ({ tool, origin }: OwnCall) => ({
  connector: RESERVED_SLUG,
  tool,
  origin,
  pin: null,
  rule: RULE,
});

/** Performs a call between its row and its outcome: no row, no call. */
export const recordOwnCall = Effect.fnUntraced(function* <R>(
  call: OwnCall,
  performing: Effect.Effect<Answered, never, R>,
) {
  const row = yield* rowFor(call);
  const beginning = yield* (yield* ExecutorCalls).begin(row, CALL_LIMITS);
  if (beginning !== "begun") return yield* refusedByLimit(beginning);
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const outcome = toOutcome(yield* Effect.exit(restore(performing)), row.id);
      yield* write(row.id, outcome);
      return outcome.result;
    }),
  );
});

/** Writes the row of a call that is refused before it is made. */
export const refuseOwnCall = Effect.fnUntraced(function* (call: OwnCall, message: string) {
  const row = yield* rowFor(call);
  const isWritten = yield* (yield* ExecutorCalls).deny(row, { message, limits: CALL_LIMITS });
  return textResult(isWritten ? onRecord(message, row.id) : message, true);
});
