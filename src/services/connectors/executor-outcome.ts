/** The end of a call that was sent: its outcome for the record, and its result for the agent, without the credential. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import { isShallow } from "../../domain/connector/catalogue.ts";
import type { Connector } from "../../domain/connector/connector.ts";
import { maskJson } from "../../domain/connector/connector-credential.ts";
import { unfitPicture } from "../../domain/conversation/image-size.ts";
import type { Redactor } from "../../domain/secret/redactor.ts";
import { ConnectorServers, type ToolCall, type ToolResult } from "../../connectors/port.ts";
import { ExecutorCalls, type CallEnd } from "../../store/ports/connectors/executor-calls.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Measures } from "../../telemetry/port.ts";
import { withCredential, type Used } from "./use.ts";
import { serverTarget } from "./connectors.ts";
import {
  CALL_LIMITS,
  onRecord,
  textResult,
  type AgentResult,
  type Arguments,
  type ToBeSent,
} from "./executor-decision.ts";
import { toldBy } from "../told.ts";

const toToolCall = ({ tool: { name, inputSchema, request }, owner }: ToBeSent, args: Arguments): ToolCall =>
  request === undefined
    ? { kind: "mcp", owner, name, inputSchema, arguments: args }
    : { kind: "http", request, arguments: args };

/** Sends a call that was decided and is on record. It fails only if it is interrupted. */
export const callServer = (connector: Connector, decision: ToBeSent, args: Arguments) =>
  Effect.flatMap(ConnectorServers, (servers) =>
    withCredential(connector, decision.credential, (credential) => {
      const { protocol } = decision;
      return servers.call(serverTarget(connector, { credential, protocol }), toToolCall(decision, args));
    }),
  );

export interface Outcome {
  readonly end: Omit<CallEnd, "now" | "outcome"> & { readonly outcome: "ok" | "error" | "unknown" };
  readonly result: AgentResult;
}

/** @param id of the call on record. */
export const callOutcome = (
  exit: Exit.Exit<Used<ToolResult>>,
  { slug, url }: Connector,
  id: string,
): Outcome => {
  const none = { upstreamStatus: null, resultBytes: null };
  if (Exit.isFailure(exit)) {
    const message = "The agent or its session ended during the call. The tool may have run.";
    return { end: { ...none, outcome: "unknown", message }, result: textResult(onRecord(message, id), true) };
  }
  const { answer, mask } = exit.value;
  if (Result.isSuccess(answer)) return toOutcome(answer.success, mask);
  const fault = answer.failure;
  if (fault._tag === "CredentialFault") {
    const { message } = fault;
    return { end: { ...none, outcome: "error", message }, result: textResult(message, true) };
  }
  const why = `${new URL(url).host} ${toldBy(mask, fault.why)}.`;
  const outcome = fault.isUnknown ? "unknown" : "error";
  const message = fault.isUnknown ? `${why} The tool may have run. It is not called again.` : why;
  const text = `The connector ${slug} gave no result: ${message}`;
  return {
    end: { ...none, outcome, message, upstreamStatus: fault.status },
    result: textResult(fault.isUnknown ? onRecord(text, id) : text, true),
  };
};

/** How much of an error's body an agent sees. */
const ERROR_LENGTH = 4000;

/** An error's body without its end, and without half a secret at the cut. */
const resultBeginning = (mask: Redactor, { content, ...result }: AgentResult): AgentResult => ({
  ...result,
  content: content.map((part) => {
    const { text } = part as { readonly text?: unknown };
    return typeof text === "string" ? { type: "text", text: mask.redactBeginning(text, ERROR_LENGTH) } : part;
  }),
});

/** A picture that providers refuse would stay in the conversation, and each later message would fail. */
const withFitPictures = ({ content, ...result }: AgentResult): AgentResult => ({
  ...result,
  content: content.map((part) => {
    const { type, data, mimeType } = part as { type?: unknown; data?: unknown; mimeType?: unknown };
    if (type !== "image") return part;
    const kind = String(mimeType).toLowerCase();
    const bytes = Buffer.from(typeof data === "string" ? data : "", "base64");
    const reason = unfitPicture(kind, bytes);
    return reason === null ? part : { type: "text", text: `[A picture (${kind}) is left out: ${reason}]` };
  }),
});

const toOutcome = ({ status, ...result }: ToolResult, mask: Redactor): Outcome => {
  const none = { upstreamStatus: status, resultBytes: null };
  if (!isShallow(result)) {
    const message = "The tool ran, and its result is too deeply nested to be passed on.";
    return { end: { ...none, outcome: "error", message }, result: textResult(message, true) };
  }
  const isError = status !== null && status >= 400;
  const fit = withFitPictures(result);
  const clean = maskJson(mask, isError ? resultBeginning(mask, fit) : fit) as AgentResult;
  const resultBytes = Buffer.byteLength(JSON.stringify(clean));
  return {
    end: {
      ...none,
      resultBytes,
      outcome: clean.isError ? "error" : "ok",
      message: clean.isError ? "The tool answered with an error." : null,
    },
    result: clean,
  };
};

const BUSY = {
  session_busy: `This session has ${CALL_LIMITS.atOnce} calls under way. Wait for one of them.`,
  connector_busy: `The connector had ${CALL_LIMITS.perConnector} calls in the last minute. Wait a moment.`,
} as const;

/** The agent's result of a call that a limit refuses. */
export const refusedByLimit = Effect.fnUntraced(function* (limit: keyof typeof BUSY) {
  (yield* Measures).count("limits_hit_total", { limit });
  return textResult(BUSY[limit], true);
});

/** The result is the agent's, whatever happens to the record: a duty ends the row if this does not. */
export const write = (id: string, { end }: { readonly end: Omit<CallEnd, "now"> }) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    yield* (yield* ExecutorCalls).end(id, { ...end, now });
  }).pipe(
    Effect.retry({ times: 3 }),
    Effect.catch((error: StoreError) =>
      Effect.logWarning("the outcome of a call was not recorded", { id, error }),
    ),
  );
