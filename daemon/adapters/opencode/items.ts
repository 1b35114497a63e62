/**
 * Turns opencode's records into items of the conversation (src/domain/conversation/conversation.ts). Pure: a listing and the events
 * about it give the same items.
 *
 * A person's message is one item with the message's id. Of the model's message, each part is an item with the part's
 * id. A failure without a part to carry it, and usage without one, is an item with the message's id.
 *
 *  O1 A text may still change after its end: an abort marks it later. It is completed when a part follows it, or when
 *     its message has ended.
 *  O2 The usage of a call of the model is in one item, its last. The sum over all items is the conversation's.
 *  O3 opencode's ids rise with the time, so they tell the order of the items.
 */
import { isDeepStrictEqual } from "node:util";
import {
  EMPTY_ITEM,
  NO_USAGE,
  type ContentPart,
  type FileChange,
  type PlanEntry,
  type ToolKind,
  type Usage,
  type ToolCall,
} from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { isRecord } from "../../../src/ground/record.ts";
import type { ItemDraft } from "../adapter.ts";
import { usageIn } from "../../../src/domain/sandbox/model-tokens.ts";
import type { PassedCalls } from "../../agent/passed-calls.ts";
import { itemOrder } from "./ids.ts";
import type { MessageInfo, Part, Recorded, SummaryState, ToolState } from "./records.ts";
import { UNKNOWN_TOOL } from "./progress.ts";
import { errorOfFinish, isAbort, turnError } from "../turn-errors.ts";

/** Where a message belongs. */
export interface Place {
  /** For a message of a subagent: the item of the tool call that started it. */
  readonly parentId: string | null;
  /** For a message of a subagent: the turn of that tool call. */
  readonly turnId: string | null;
  /** For a message that asks for a summary: what became of it. */
  readonly summary?: SummaryState | null;
  /** For a message of the model: how many tokens its context can hold. Null if not known. */
  readonly contextSize?: number | null;
}

export const TOP: Place = { parentId: null, turnId: null };

const KINDS: Readonly<Record<string, ToolKind>> = {
  read: "read",
  skill: "read",
  grep: "search",
  glob: "search",
  list: "search",
  codesearch: "search",
  websearch: "search",
  edit: "edit",
  write: "edit",
  patch: "edit",
  apply_patch: "edit",
  multiedit: "edit",
  bash: "execute",
  webfetch: "fetch",
  task: "think",
};

/** The end of a shell command's output if its turn was aborted. */
const ABORTED = "User aborted the command\n</shell_metadata>";
/** Errors of tools whose turn, or whose subagent's turn, was aborted. */
const INTERRUPTIONS: ReadonlySet<string> = new Set(["Tool execution aborted", "Task cancelled"]);
/** The beginning of a running command's output whose first lines opencode has dropped. */
const DROPPED = "...\n\n";

/** The items of a message, in their order. */
export const messageItems = ({ info, parts }: Recorded, place: Place): readonly ItemDraft[] =>
  info.role === "user" ? sentItem(info, parts, place) : modelItems(info, parts, place);

/** A subagent's instructions are in the input of its tool call, so they are no item of their own. */
const sentItem = (info: MessageInfo, parts: readonly Part[], place: Place): readonly ItemDraft[] => {
  if (place.parentId !== null) return [];
  const content = parts.flatMap((part) =>
    part.synthetic === true || part.ignored === true ? [] : partContent(part),
  );
  const note = noteIn(parts, place.summary ?? "made");
  const isOpen = note !== null && place.summary === "open";
  if (content.length === 0 && note === null) return [];
  return [
    {
      ...EMPTY_ITEM,
      native_id: info.id,
      ...itemOrder(info.id),
      kind: note === null ? "message" : "note",
      role: note === null ? "user" : null,
      status: isOpen ? "running" : "completed",
      turn_id: info.id,
      parent_id: null,
      content: note === null ? content : [{ type: "text", text: note }],
      created_at: info.time.created,
      completed_at: isOpen ? null : info.time.created,
      ...(note === SUMMARY_NOTES.made && { compacts: true }),
    },
  ];
};

/** The text that people see in place of a message that no person wrote. Null if a person wrote it. */
const noteIn = (parts: readonly Part[], summary: SummaryState): string | null => {
  if (parts.some(({ type }) => type === "compaction")) return SUMMARY_NOTES[summary];
  const notes = parts.flatMap(({ synthetic, metadata }) =>
    synthetic === true ? (textIn(metadata, NOTE) ?? []) : [],
  );
  return notes[0] ?? null;
};

/** The name under which a synthetic part has its note. */
export const NOTE = "platform_note";

const SUMMARY_NOTES: Readonly<Record<SummaryState, string>> = {
  open: "The agent runtime asks the model for a summary of the conversation so far, to fit the model's context.",
  made: "The agent runtime replaced the conversation so far with a summary, to fit the model's context.",
  failed: "The agent runtime could not replace the conversation so far with a summary: the model gave none.",
};

const partContent = ({ type, text = "", mime, filename }: Part): readonly ContentPart[] => {
  if (type === "text") return text === "" ? [] : [{ type: "text", text }];
  if (type !== "file" || mime === undefined) return [];
  return [{ type: "file", name: filename ?? "file", media_type: mime, attachment_id: null }];
};

const modelItems = (info: MessageInfo, parts: readonly Part[], place: Place): readonly ItemDraft[] => {
  const attempt = parts.findLastIndex(({ type }) => type === "step-start");
  const items = parts.flatMap((part, at) =>
    partItem(info, part, { place, last: at === parts.length - 1, isPast: at < attempt }),
  );
  const usage = messageUsage(info);
  const end = messageEnd(info);
  const isTold = end === null || (items.length === 0 ? end.status === "completed" : carries(items, end));
  const isCounted = usage === null || items.length > 0;
  const isOpen = end === null || items.some(({ status }) => !isClosed(status));
  const whole = isOpen || (isTold && isCounted) ? items : [...items, ownItem(info, place, { end, parts })];
  const last = whole.at(-1);
  return last === undefined
    ? []
    : [...whole.slice(0, -1), { ...last, usage, ...messageContext(info, usage, place) }];
};

/** A call for a summary reads what the summary replaces. */
const messageContext = (
  { summary }: MessageInfo,
  usage: Usage | null,
  { parentId, contextSize = null }: Place,
): Pick<ItemDraft, "context"> =>
  usage === null || parentId !== null || summary === true
    ? {}
    : { context: { tokens: usage.input_tokens + usage.output_tokens, size: contextSize } };

type End = Pick<ItemDraft, "status" | "error">;

/** How a message of the model ended. Null while it goes on. */
const messageEnd = ({ time, error, finish }: MessageInfo): End | null => {
  if (error !== undefined && isAbort(error)) return { status: "interrupted", error: null };
  if (error !== undefined) return { status: "failed", error: turnError(error) };
  const finishError = errorOfFinish(finish);
  if (finishError !== undefined) return { status: "failed", error: turnError(finishError) };
  if (time.completed === undefined) return null;
  // opencode reports no error for an abort while it waited for its next attempt.
  return { status: finish === undefined ? "interrupted" : "completed", error: null };
};

/** Whether the message's last item shows how the message ended. */
const carries = (items: readonly ItemDraft[], end: End): boolean => {
  const last = items.at(-1);
  return (
    end.status === "completed" || (last?.status === end.status && isDeepStrictEqual(last.error, end.error))
  );
};

/** It comes after the message's parts. */
const ownItem = (
  info: MessageInfo,
  place: Place,
  { end, parts }: { readonly end: End; readonly parts: readonly Part[] },
): ItemDraft => ({
  ...itemFrame(info, place),
  native_id: info.id,
  ...itemOrder(parts.at(-1)?.id ?? info.id, 1),
  kind: "message",
  ...end,
  completed_at: info.time.completed ?? null,
});

const messageUsage = ({ tokens, cost = 0 }: MessageInfo): Usage | null => {
  if (tokens === undefined) return null;
  const usage = { ...usageIn(tokens), cost_usd: cost };
  return isDeepStrictEqual(usage, NO_USAGE) ? null : usage;
};

/** A message of the model with the tokens of its call. opencode does not record those of a stopped one (passed-calls.ts U1). */
export const withPassedTokens = (
  info: MessageInfo,
  calls: Pick<PassedCalls, "messageTokens">,
): MessageInfo => {
  if (info.role !== "assistant") return info;
  const tokens = calls.messageTokens(info.id, info.tokens, messageEnd(info)?.status === "interrupted");
  return tokens === undefined ? info : { ...info, tokens };
};

const itemFrame = (info: MessageInfo, place: Place) => ({
  ...EMPTY_ITEM,
  role: "agent" as const,
  turn_id: place.turnId ?? info.parentID ?? null,
  parent_id: place.parentId,
  model:
    info.modelID === undefined || info.providerID === undefined ? null : `${info.providerID}/${info.modelID}`,
  created_at: info.time.created,
});

interface Position {
  readonly place: Place;
  /** No part of the message follows. */
  readonly last: boolean;
  /** A later attempt at the same call of the model has begun. */
  readonly isPast: boolean;
}

const partItem = (info: MessageInfo, part: Part, { place, ...position }: Position): readonly ItemDraft[] => {
  const frame = { ...itemFrame(info, place), native_id: part.id, ...itemOrder(part.id) };
  if (part.type === "tool" && part.state !== undefined)
    return [toolItem(asCalled(part.tool ?? "", part.state), { info, frame })];
  const isText = part.type === "text" && part.synthetic !== true && part.ignored !== true;
  // A text of an attempt that failed is empty.
  if ((!isText && part.type !== "reasoning") || (part.text ?? "") === "") return [];
  const end = textEnd(info, part, position);
  const isOver = isClosed(end.status);
  return [
    {
      ...frame,
      kind: part.type === "reasoning" ? "thought" : info.summary === true ? "note" : "message",
      ...end,
      content: [{ type: "text", text: part.text ?? "" }],
      ...(part.dropped !== undefined && { dropped: part.dropped }),
      created_at: part.time?.start ?? info.time.created,
      completed_at: isOver ? (part.time?.end ?? info.time.completed ?? null) : null,
    },
  ];
};

/** An unfinished text, from an attempt that broke off. */
const BROKEN_OFF: End = {
  status: "interrupted",
  error: {
    code: "model_connection_lost",
    message:
      "The answer broke off here: the connection to the model ended, for example because the service was restarted, or the model's " +
      "provider reported an error. The agent runtime asked the model again.",
  },
};

/** O1. */
const textEnd = (info: MessageInfo, part: Part, { last, isPast }: Omit<Position, "place">): End => {
  const hasEnd = part.time?.end !== undefined;
  if (isPast && !hasEnd) return BROKEN_OFF;
  const end = messageEnd(info);
  if (end === null) return { status: hasEnd && !last ? "completed" : "running", error: null };
  if (last) return end;
  return hasEnd ? { status: "completed", error: null } : BROKEN_OFF;
};

type Frame = Omit<ItemDraft, "kind" | "status" | "completed_at">;

/** A call of an unknown tool, under the name that the model gave, as the failure that it is. */
const asCalled = (name: string, state: ToolState): readonly [name: string, state: ToolState] =>
  name === UNKNOWN_TOOL && state.status === "completed"
    ? [
        textIn(state.input, "tool") ?? name,
        {
          ...state,
          status: "error",
          error: textIn(state.input, "error") ?? state.output ?? "The tool is unknown.",
        },
      ]
    : [name, state];

const toolItem = (
  call: readonly [name: string, state: ToolState],
  { info, frame }: { readonly info: MessageInfo; readonly frame: Frame },
): ItemDraft => {
  const [name, state] = call;
  const status = toolStatus(state);
  const message = state.error ?? "The tool failed.";
  const common = {
    ...frame,
    status,
    error: status === "failed" ? { code: "tool_failed", message } : null,
    created_at: state.time?.start ?? info.time.created,
    completed_at: isClosed(status) ? (state.time?.end ?? info.time.completed ?? null) : null,
  };
  if (name === "todowrite" && status !== "failed")
    return { ...common, kind: "plan", plan: planEntries(state.input) };
  return {
    ...common,
    kind: "tool",
    content: (state.attachments ?? []).map(({ mime, filename }) => ({
      type: "file" as const,
      name: filename ?? state.title ?? name,
      media_type: mime,
      attachment_id: null,
    })),
    tool: {
      name,
      kind: KINDS[name] ?? "other",
      title: state.title ?? null,
      input: state.input ?? {},
      output: toolOutput(state),
      truncated: state.metadata?.["truncated"] === true,
      changes: fileChanges(name, state, info.path?.root ?? ""),
      ...toExitCode(state),
    },
  };
};

const toolStatus = ({ status, error = "", output = "", metadata }: ToolState): ItemDraft["status"] => {
  if (status === "error")
    return metadata?.["interrupted"] === true || INTERRUPTIONS.has(error) ? "interrupted" : "failed";
  return status === "completed" && output.endsWith(ABORTED) ? "interrupted" : status;
};

/** A command that a signal ended has none. */
const toExitCode = ({ status, metadata }: ToolState): Pick<ToolCall, "exit_code"> => {
  const exit = metadata?.["exit"];
  return status === "completed" && typeof exit === "number" ? { exit_code: exit } : {};
};

/** A running command's output so far is in its metadata. */
const toolOutput = ({ output, metadata }: ToolState): string => {
  if (output !== undefined) return output;
  const soFar = textIn(metadata, "output") ?? "";
  // The first line may have lost its beginning, and with it the beginning of a secret.
  return soFar.startsWith(DROPPED) ? soFar.slice(soFar.indexOf("\n", DROPPED.length) + 1) : soFar;
};

/** A text field of a record that may be of any form. */
export const textIn = (fields: unknown, name: string): string | null => {
  const value = isRecord(fields) ? fields[name] : undefined;
  return typeof value === "string" ? value : null;
};

const PLAN_STATUS: Readonly<Record<string, PlanEntry["status"]>> = {
  in_progress: "running",
  completed: "completed",
  cancelled: "cancelled",
};

const planEntries = (input: unknown): readonly PlanEntry[] => {
  const todos = isRecord(input) ? input["todos"] : undefined;
  return (Array.isArray(todos) ? todos : []).map((todo: unknown) => ({
    text: textIn(todo, "content") ?? "",
    status: PLAN_STATUS[textIn(todo, "status") ?? ""] ?? "pending",
  }));
};

const OPERATIONS: Readonly<Record<string, FileChange["operation"]>> = {
  add: "add",
  delete: "delete",
  move: "move",
};

/** The files that a tool changed, with paths below the repository's root. */
const fileChanges = (
  name: string,
  { status, input, metadata }: ToolState,
  root: string,
): readonly FileChange[] => {
  if (status !== "completed" || metadata === undefined) return [];
  const below = belowRoot(root);
  const { files, filediff, exists } = metadata;
  if (Array.isArray(files)) return changedFiles(files, below);
  const path = textIn(filediff, "file") ?? (name === "write" ? textIn(input, "filePath") : null);
  if (path === null) return [];
  return [
    {
      path: below(path),
      operation: exists === false ? "add" : "update",
      patch: relativePatch(textIn(filediff, "patch"), below),
    },
  ];
};

/** @param root of the repository. "": unknown */
const belowRoot =
  (root: string) =>
  (path: string): string =>
    path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;

const changedFiles = (files: readonly unknown[], below: (path: string) => string): readonly FileChange[] =>
  files.map((file) => ({
    path: textIn(file, "relativePath") ?? below(textIn(file, "filePath") ?? ""),
    operation: OPERATIONS[textIn(file, "type") ?? ""] ?? "update",
    patch: relativePatch(textIn(file, "patch"), below),
  }));

/** What a tool asks to change. Null if the runtime does not tell it, or the tool changes no file. */
export const askedChanges = (metadata: unknown, root: string): readonly FileChange[] | null => {
  if (!isRecord(metadata)) return null;
  const below = belowRoot(root);
  if (Array.isArray(metadata["files"])) return changedFiles(metadata["files"], below);
  const [path, patch] = [textIn(metadata, "filepath"), relativePatch(textIn(metadata, "diff"), below)];
  return path === null || patch === null ? null : [{ path: below(path), operation: "update", patch }];
};

/** The unified diff, without opencode's header above it. */
const relativePatch = (patch: string | null, below: (path: string) => string): string | null => {
  const start = patch === null ? -1 : patch.search(/^--- /m);
  if (patch === null || start === -1) return patch;
  const [from = "", to = "", ...hunks] = patch.slice(start).split("\n");
  return [relativeLine(from, below), relativeLine(to, below), ...hunks].join("\n");
};

/** A line such as `--- /workspace/a.txt`, with the path as in `FileChange`. */
const relativeLine = (line: string, below: (path: string) => string): string =>
  `${line.slice(0, 4)}${below(line.slice(4))}`;
