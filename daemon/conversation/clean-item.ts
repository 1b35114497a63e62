/** Makes an item of the conversation fit to leave the sandbox: without secrets, storable, and within the limits. */
import {
  OUTPUT_INLINE_MAX,
  type AgentRequest,
  type ContentPart,
  type FileChange,
  type ToolCall,
} from "../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../src/domain/conversation/growing.ts";
import { cutText, storableText } from "../../src/domain/text.ts";
import type { ItemDraft } from "../adapters/adapter.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";

/** The longest title, name, path or label, in UTF-16 code units. */
const LABEL_MAX = 1000;
/** The longest error text. */
const ERROR_MAX = 4096;
/** How much of a tool's arguments an item holds, in bytes of JSON. */
const INPUT_MAX = 64 * 1024;
/** How long each text in larger arguments may be. */
const INPUT_TEXT_MAX = 4096;
/** Deeper arguments are cut. */
const INPUT_DEPTH_MAX = 32;
/** How much the patches of one item have together, in bytes. The rest have none. */
const PATCHES_MAX = 64 * 1024;
/** The longest command that waits for a permission, in UTF-16 code units. Its end says how much is missing. */
const COMMAND_MAX = 16 * 1024;
/** The longest plan that waits for an approval, in UTF-16 code units. Its end says how much is missing. */
const PLAN_MAX = 64 * 1024;
/** How many entries a list of an item has: changes, entries of a plan, questions, options, patterns. */
const ENTRIES_MAX = 500;

/** An item without secrets, and the whole of an output that the item holds only the beginning of. */
export interface Cleaned {
  readonly item: ItemDraft;
  readonly output: string | null;
}

/** A label without secrets, within its limit. */
export const cleanLabel = (text: string, redactor: Redactor): string =>
  cutText(redactor.redact(storableText(text)), LABEL_MAX);

/** `redactor` may hold a secret that the text's end only begins: `broken` says that the text may break off. */
export const cleanItem = (draft: ItemDraft, redactor: Redactor): Cleaned => {
  const isBroken = draft.status !== "completed" || draft.dropped !== undefined;
  const label = (text: string): string => cleanLabel(text, redactor);
  const whole = (text: string): string => {
    const storable = storableText(text);
    return isBroken ? redactor.redactBroken(storable) : redactor.redact(storable);
  };
  const { dropped = 0, ...kept } = draft;
  const output = draft.tool === null ? "" : whole(draft.tool.output);
  const inline = cutBytes(output, OUTPUT_INLINE_MAX);
  const item: ItemDraft = {
    ...kept,
    content: markCut(
      draft.content.map((part) => cleanPart(part, { whole, label })),
      isClosed(draft.status) ? dropped : 0,
    ),
    tool: draft.tool === null ? null : { ...cleanTool(draft.tool, { redactor, label }), output: inline },
    plan: draft.plan.slice(0, ENTRIES_MAX).map(({ text, status }) => ({ text: label(text), status })),
    request: draft.request === null ? null : cleanRequest(draft.request, { redactor, label }),
    model: draft.model === null ? null : label(draft.model),
    error:
      draft.error === null
        ? null
        : {
            code: draft.error.code,
            message: cutText(redactor.redact(storableText(draft.error.message)), ERROR_MAX),
          },
  };
  if (item.tool === null || inline === output) return { item, output: null };
  return { item: { ...item, tool: { ...item.tool, truncated: true } }, output };
};

/** The content, whose text says at its end how much of it was dropped. */
const markCut = (content: readonly ContentPart[], dropped: number): readonly ContentPart[] => {
  const last = content.at(-1);
  if (dropped === 0 || last?.type !== "text") return content;
  const mark = `\n\n[The text was too long. ${dropped} more characters were dropped.]`;
  return [...content.slice(0, -1), { type: "text", text: `${last.text}${mark}` }];
};

type Clean = (text: string) => string;

const cleanPart = (part: ContentPart, { whole, label }: { whole: Clean; label: Clean }): ContentPart =>
  part.type === "text"
    ? { type: "text", text: whole(part.text) }
    : { ...part, name: label(part.name), media_type: label(part.media_type) };

const cleanTool = (tool: ToolCall, { redactor, label }: { redactor: Redactor; label: Clean }): ToolCall => ({
  ...tool,
  name: label(tool.name),
  title: tool.title === null ? null : label(tool.title),
  input: cleanInput(tool.input, redactor),
  changes: cleanChanges(tool.changes, { redactor, label }),
});

const cleanRequest = (
  { kind, title, patterns, command, always, changes, questions, plan }: AgentRequest,
  { redactor, label }: { redactor: Redactor; label: Clean },
): AgentRequest => ({
  kind,
  title: label(title),
  patterns: patterns.slice(0, ENTRIES_MAX).map(label),
  ...(command !== undefined && {
    command: cleanWhole(command, redactor, { what: "command", max: COMMAND_MAX }),
  }),
  ...(always !== undefined && { always: always.slice(0, ENTRIES_MAX).map(label) }),
  ...(changes !== undefined && { changes: cleanChanges(changes, { redactor, label }) }),
  questions: questions.slice(0, ENTRIES_MAX).map((question) => ({
    title: label(question.title),
    text: label(question.text),
    options: question.options.slice(0, ENTRIES_MAX).map((option) => ({
      label: label(option.label),
      description: option.description === null ? null : label(option.description),
    })),
    multiple: question.multiple,
  })),
  ...(plan !== undefined && {
    plan: {
      ...plan,
      text: cleanWhole(plan.text, redactor, { what: "plan", max: PLAN_MAX }),
      modes: plan.modes.slice(0, ENTRIES_MAX).map(({ id, name }) => ({ id, name: label(name) })),
    },
  }),
});

/** A text that people must see whole before they decide. One that is too long says how much of it is missing. */
const cleanWhole = (
  text: string,
  redactor: Redactor,
  { what, max }: { readonly what: string; readonly max: number },
): string => {
  const clean = redactor.redact(storableText(text));
  const visible = cutText(clean, max);
  const missing = clean.length - visible.length;
  return missing === 0
    ? clean
    : `${visible}\n… ${String(missing)} more characters of the ${what} are not shown.`;
};

const cleanChanges = (
  changes: readonly FileChange[],
  { redactor, label }: { redactor: Redactor; label: Clean },
): readonly FileChange[] => {
  let room = PATCHES_MAX;
  return changes.slice(0, ENTRIES_MAX).map(({ path, operation, patch }) => {
    const clean = patch === null ? null : redactor.redact(storableText(patch));
    const size = clean === null ? 0 : Buffer.byteLength(clean);
    const fits = size <= room;
    if (fits) room -= size;
    return { path: label(path), operation, patch: fits ? clean : null };
  });
};

/** Arguments that are too large lose the ends of their texts. Null if that is not enough. */
const cleanInput = (input: unknown, redactor: Redactor): unknown => {
  const clean = mapTexts(input, (text) => redactor.redact(storableText(text)));
  if (jsonSize(clean) <= INPUT_MAX) return clean;
  const cut = mapTexts(clean, (text) => cutText(text, INPUT_TEXT_MAX));
  return jsonSize(cut) <= INPUT_MAX ? cut : null;
};

const jsonSize = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "");

/** The same value with each text in it changed. A number is changed to text if it is a secret. */
const mapTexts = (value: unknown, change: Clean, depth = 0): unknown => {
  if (typeof value === "string") return change(value);
  if (typeof value === "number")
    return change(String(value)) === String(value) ? value : change(String(value));
  if (typeof value !== "object" || value === null) return value ?? null;
  if (depth === INPUT_DEPTH_MAX) return null;
  if (Array.isArray(value)) return value.map((entry: unknown) => mapTexts(entry, change, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [change(name), mapTexts(entry, change, depth + 1)]),
  );
};

/** The beginning of a text, at most that many bytes of UTF-8. */
const cutBytes = (text: string, maxBytes: number): string => {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(cutText(text, maxBytes)).subarray(0, maxBytes);
  // A character that the cut splits is decoded as U+FFFD, at the end.
  return bytes.toString("utf8").replace(/\ufffd+$/, "");
};
