/** Turns the Agent Client Protocol's records of tool calls, plans and requests into parts of items. Pure. */
import type {
  PlanEntry as ToldEntry,
  RequestPermissionRequest,
  SessionUpdate,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import * as Schema from "effect/Schema";
import {
  OUTPUT_KEPT_MAX,
  type AgentRequest,
  type FileChange,
  type PlanEntry,
  type ProposedPlan,
  ToolKind,
} from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { cutText } from "../../../src/domain/text.ts";
import { makePatch } from "./diff.ts";
import type { ItemDraft } from "../adapter.ts";

/** A tool call, as the agent has told it so far. */
export interface HeldCall {
  /** Its first title. The protocol has no name of a tool. */
  readonly name: string;
  readonly title: string;
  readonly kind: string;
  readonly status: string;
  readonly input: unknown;
  readonly content: readonly ToolCallContent[];
  readonly result: unknown;
  readonly paths: readonly string[];
  /** The output of its command, if the agent tells it apart. */
  readonly terminal: string;
  /** Of its command. Null if the agent does not tell it. */
  readonly exitCode: number | null;
}

const optional = Schema.optionalKey;
const Output = optional(Schema.NullOr(Schema.Struct({ data: Schema.String })));
/** What agents tell of a command's terminal beyond the protocol: pieces of its output, or all of it, and its end. */
const TerminalMeta = Schema.Struct({
  terminal_output: Output,
  terminal_output_delta: Output,
  terminal_exit: optional(Schema.NullOr(Schema.Struct({ exit_code: Schema.NullOr(Schema.Finite) }))),
});
const decodeTerminal = Schema.decodeUnknownOption(TerminalMeta);

/** Claude Code's: the protocol knows no sub-agents. */
const ChildMeta = Schema.Struct({ claudeCode: Schema.Struct({ parentToolUseId: Schema.String }) });
const decodeChild = Schema.decodeUnknownOption(ChildMeta);

/** The agent's id of the call whose sub-agent tells this. Null if the agent itself does, or it does not say. */
export const parentCall = ({ _meta: meta }: { readonly _meta?: unknown }): string | null => {
  const child = decodeChild(meta);
  return child._tag === "Some" ? child.value.claudeCode.parentToolUseId : null;
};

/** Whether the agent itself says something to people. */
export const isOwnText = (update: SessionUpdate): boolean =>
  update.sessionUpdate === "agent_message_chunk" &&
  parentCall(update) === null &&
  update.content.type === "text" &&
  update.content.text !== "";

/** What opencode tells of a command's end, in its own record of a call. */
const Ended = Schema.Struct({ metadata: Schema.Struct({ exit: Schema.Finite }) });
const decodeEnded = Schema.decodeUnknownOption(Ended);

const mergeTerminal = (
  former: Pick<HeldCall, "terminal" | "exitCode"> | null,
  { _meta: meta, rawOutput }: ToolCallUpdate,
): Pick<HeldCall, "terminal" | "exitCode"> => {
  const exitMeta = decodeEnded(rawOutput);
  const { terminal = "", exitCode: before = null } = former ?? {};
  const exitCode = exitMeta._tag === "Some" ? exitMeta.value.metadata.exit : before;
  const terminalMeta = decodeTerminal(meta);
  if (terminalMeta._tag === "None") return { terminal, exitCode };
  const { terminal_output: all, terminal_output_delta: more, terminal_exit: end } = terminalMeta.value;
  const output = all?.data ?? terminal + (more?.data ?? "");
  // One character more than is shown, so that a cut is seen.
  return { terminal: output.slice(0, OUTPUT_KEPT_MAX + 1), exitCode: end?.exit_code ?? exitCode };
};

/** A later report replaces what it names, and leaves the rest. */
export const mergeCall = (former: HeldCall | null, update: ToolCallUpdate): HeldCall => {
  const title = update.title ?? former?.title ?? "tool";
  return {
    name: former?.name ?? title,
    title,
    kind: update.kind ?? former?.kind ?? "other",
    status: update.status ?? former?.status ?? "pending",
    input: update.rawInput ?? former?.input ?? {},
    content: update.content ?? former?.content ?? [],
    result: update.rawOutput ?? former?.result ?? null,
    paths: update.locations?.map(({ path }) => path) ?? former?.paths ?? [],
    ...mergeTerminal(former, update),
  };
};

const isKind = Schema.is(ToolKind);

const STATUS: Readonly<Record<string, "pending" | "running" | "completed" | "failed">> = {
  in_progress: "running",
  completed: "completed",
  failed: "failed",
};

interface Surroundings {
  readonly workspace: string;
  /** A tool that fails now is interrupted. */
  readonly isStopping: boolean;
  readonly nowMs: number;
}

/** The item of a tool call. */
export const toolCallItem = (
  draft: ItemDraft,
  call: HeldCall,
  { workspace, isStopping, nowMs }: Surroundings,
): ItemDraft => {
  const reportedStatus = STATUS[call.status] ?? "pending";
  const status = reportedStatus === "failed" && isStopping ? "interrupted" : reportedStatus;
  const output = callOutput(call);
  return {
    ...draft,
    status,
    error: status === "failed" ? { code: "tool_failed", message: output || "The tool failed." } : null,
    tool: {
      name: call.name,
      kind: isKind(call.kind) ? call.kind : "other",
      title: call.title,
      input: call.input,
      output: cutText(output, OUTPUT_KEPT_MAX),
      truncated: output.length > OUTPUT_KEPT_MAX,
      changes: reportedStatus === "completed" ? callChanges(call, workspace) : [],
      ...(call.exitCode !== null && { exit_code: call.exitCode }),
    },
    completed_at: isClosed(status) ? nowMs : null,
  };
};

const callOutput = ({ content, result, terminal }: HeldCall): string => {
  const texts = content.flatMap((part) =>
    part.type === "content" && "content" in part && part.content.type === "text" && "text" in part.content
      ? [String(part.content.text)]
      : [],
  );
  if (texts.length === 0 && terminal !== "") return terminal;
  if (texts.length > 0 || result === null) return texts.join("\n");
  if (typeof result === "string") return result;
  return JSON.stringify(result);
};

/** Kinds whose locations are the files that they change. */
const CHANGING: Readonly<Record<string, FileChange["operation"]>> = {
  edit: "update",
  delete: "delete",
  move: "move",
};

const callChanges = ({ content, kind, paths }: HeldCall, workspace: string): readonly FileChange[] => {
  const diffs = content.flatMap((part): readonly FileChange[] => {
    if (part.type !== "diff" || !("newText" in part)) return [];
    const path = below(workspace, part.path);
    const before = part.oldText ?? null;
    const operation = before === null ? "add" : kind === "delete" ? "delete" : "update";
    return [{ path, operation, patch: makePatch(path, before, part.newText) }];
  });
  const operation = CHANGING[kind];
  if (diffs.length > 0 || operation === undefined) return diffs;
  return [...new Set(paths)].map((path) => ({ path: below(workspace, path), operation, patch: null }));
};

const below = (workspace: string, path: string): string =>
  path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;

const PLAN_STATUS: Readonly<Record<string, PlanEntry["status"]>> = {
  in_progress: "running",
  completed: "completed",
};

export const planEntries = (entries: readonly ToldEntry[]): readonly PlanEntry[] =>
  entries.map(({ content, status }) => ({ text: content, status: PLAN_STATUS[status] ?? "pending" }));

/** What an agent asks for, and what the answer `always` to it allows. */
export interface Asking {
  readonly request: AgentRequest;
  /** Equal for requests that show the same as `always`. Null means a plan, which is never allowed without a question. */
  readonly rule: string | null;
}

const Planned = Schema.Struct({ plan: Schema.String });
const decodePlanned = Schema.decodeUnknownOption(Planned);

/**
 * The plan of a request to leave the mode that plans. Its options are the ways to go on. Null if it asks for something else.
 *
 * @param planText the plan of a runtime that writes it into a file. Null if the request is another one
 */
export const proposedPlan = (
  { toolCall, options }: RequestPermissionRequest,
  planText: string | null,
): ProposedPlan | null => {
  if (toolCall.kind !== "switch_mode" && planText === null) return null;
  const planInput = decodePlanned(toolCall.rawInput);
  const callText = () => callOutput(mergeCall(null, toolCall));
  const text = planText ?? (planInput._tag === "Some" ? planInput.value.plan : callText());
  const ways = ["allow_once", "allow_always"].flatMap((kind) => options.filter((one) => one.kind === kind));
  if (text === "" || ways.length === 0) return null;
  return { text, modes: ways.map(({ optionId: id, name }) => ({ id, name })), in_turn: true };
};

/** @param former the call, as the agent has told it before. Null if it has not. */
export const readRequest = (
  { toolCall }: Pick<RequestPermissionRequest, "toolCall">,
  former: HeldCall | null,
  workspace: string,
): Asking => {
  const what = former?.name ?? toolCall.kind ?? "permission";
  const call = mergeCall(former, toolCall);
  const paths = (toolCall.locations ?? []).map(({ path }) => below(workspace, path));
  const { title } = toolCall;
  const command = call.kind === "execute" ? commandIn(call.input) : null;
  const always = allowedByAlways(
    call,
    command,
    call.paths.map((path) => below(workspace, path)),
  );
  return {
    request: {
      kind: "permission",
      title: what,
      patterns: [...new Set([...(title && title !== what ? [title] : []), ...paths])],
      ...(command !== null && { command }),
      always,
      ...(call.content.some(({ type }) => type === "diff") && { changes: callChanges(call, workspace) }),
      questions: [],
    },
    rule: JSON.stringify([call.kind, ...always]),
  };
};

const Command = Schema.Struct({ command: Schema.Union([Schema.String, Schema.Array(Schema.String)]) });
const decodeCommand = Schema.decodeUnknownOption(Command);

/** The command of a call. Null if the agent does not tell it. */
const commandIn = (input: unknown): string | null => {
  const commandInput = decodeCommand(input);
  if (commandInput._tag === "None") return null;
  const { command } = commandInput.value;
  return typeof command === "string" ? command : command.join(" ");
};

/** Kinds of calls that are the same if they concern the same files. */
const OF_FILES: ReadonlySet<string> = new Set(["read", "edit", "delete", "move"]);

/** The same command, the same thing done to the same files, or the call with the same title: never more than the request shows. */
const allowedByAlways = (
  { kind, title }: HeldCall,
  command: string | null,
  paths: readonly string[],
): readonly string[] => {
  if (command !== null) return [command];
  return OF_FILES.has(kind) && paths.length > 0 ? paths.map((path) => `${kind} ${path}`) : [title];
};
