/**
 * What a tool call says of itself: its line, and its input and output in a reader's form. The page and the command line load this
 * file, so it imports no schema.
 */
import { quantity } from "../counted.ts";
import type { ItemError, ItemStatus, ToolCall, ToolKind } from "./conversation.ts";

/** What an item tells of a call. */
interface Called {
  readonly status: ItemStatus;
  readonly error: ItemError | null;
  readonly tool: ToolCall | null;
}

/** The work of a tool, in a word. */
export const KIND_WORDS: Readonly<Record<ToolKind, string>> = {
  read: "Read",
  edit: "Edit",
  delete: "Delete",
  move: "Move",
  search: "Search",
  execute: "Run",
  think: "Think",
  fetch: "Fetch",
  other: "Use",
};

/** @returns the values of an input by name */
export const toolInput = ({ input }: ToolCall): Readonly<Record<string, unknown>> =>
  typeof input === "object" && input !== null ? Object.fromEntries(Object.entries(input)) : {};

/** A text field of the input. "": the input has no such text. */
const field = (tool: ToolCall, name: string): string => {
  const value = toolInput(tool)[name];
  return typeof value === "string" ? value.trim() : "";
};

/** The inputs that say most, in this order. */
const TELLING = ["command", "filePath", "path", "pattern", "query", "url"];
const TITLE_MAX = 120;

const firstLine = (text: string): string => {
  const line = text.split("\n", 1)[0] ?? "";
  return line.length > TITLE_MAX ? `${line.slice(0, TITLE_MAX)}…` : line;
};

/** The command as it was typed. "": the tool runs none, or does not tell. */
export const toolCommand = (tool: ToolCall): string => {
  const { command } = toolInput(tool);
  if (Array.isArray(command)) return command.join(" ");
  return typeof command === "string" ? command : "";
};

interface Title {
  readonly text: string;
  /** Whether it is words, and not a command or a path. */
  readonly isProse: boolean;
}

/** The model's own description. Without one, what the runtime calls the work, or what the input says most. */
export const toolTitle = (tool: ToolCall): Title => {
  const description = field(tool, "description");
  if (description !== "") return { text: firstLine(description), isProse: true };
  const { title, name, kind } = tool;
  // A runtime may name what a tool does only when it has ended.
  if (title !== null && title !== "" && title !== name)
    return { text: firstLine(title), isProse: kind === "other" || kind === "think" };
  const telling = TELLING.map((one) => field(tool, one)).find((value) => value !== "");
  return { text: telling === undefined ? name : firstLine(telling), isProse: telling === undefined };
};

const EXIT = /^exit_(\d+)$/;

/** The service's words to the agent (api.md 5 "Approvals"). */
const DENIED = "was denied by a person, and was not made.";

/** Why a call did not succeed, in a word or two. A call that a person denied did not fail. Null if it did succeed, or has not ended. */
export const failureWord = ({ status, error, tool }: Called): string | null => {
  if (status === "running" || status === "pending") return null;
  if (error?.message.includes(DENIED) === true) return "denied";
  // A runtime may take a command that failed for one that completed.
  const exit = EXIT.exec(error?.code ?? "")?.[1] ?? String(tool?.exit_code ?? 0);
  if (exit !== "0") return `exit ${exit}`;
  return status === "completed" ? null : status;
};

/** Folded reads and searches in one line, e.g. "Explored 5 files, 2 searches". */
export const exploredWords = (items: readonly Omit<Called, "error">[]): string => {
  const tools = items.flatMap(({ tool }) => (tool === null ? [] : [tool]));
  const reads = tools.filter(({ kind }) => kind === "read");
  const files = new Set(
    reads.map((tool) => field(tool, "filePath") || field(tool, "path") || toolTitle(tool).text),
  );
  const searches = tools.length - reads.length;
  const verb = items.some(({ status }) => status !== "completed") ? "Exploring" : "Explored";
  const result = quantity(searches, "search", "searches");
  if (files.size === 0) return `${verb}: ${result}`;
  return [`${verb} ${quantity(files.size, "file")}`, searches > 0 && result].filter(Boolean).join(", ");
};

const CONTENT = /<content>\n?([\s\S]*?)\n*(?:\(End of file[^\n]*\)\s*)?<\/content>/;

/** What a tool read: runtimes may send a file between marks of their own. */
export const fileContent = ({ output }: ToolCall): string => CONTENT.exec(output)?.[1] ?? output;

interface Hit {
  /** In the file. Null if the file itself was found. */
  readonly line: string | null;
  readonly text: string;
}

export interface HitFile {
  readonly path: string;
  readonly hits: readonly Hit[];
}

const FILE_HEAD = /^(\S.*):$/;
const LINE_HIT = /^\s+Line (\d+): ?(.*)$/;
const FLAT_HIT = /^([^:\s][^:]*):(\d+):(?:\d+:)?(.*)$/;
const PATH = /^[^\s:]*[/.][^\s:]*$/;

/** The files that a search found. Null if its output has another form. */
export const searchHits = ({ output }: ToolCall): readonly HitFile[] | null => {
  const files = new Map<string, Hit[]>();
  const add = (path: string, ...hits: readonly Hit[]): void => {
    files.set(path, [...(files.get(path) ?? []), ...hits]);
  };
  let path = "";
  for (const line of output.split("\n")) {
    const [, number, text = ""] = LINE_HIT.exec(line) ?? [];
    const flat = FLAT_HIT.exec(line);
    const head = FILE_HEAD.exec(line)?.[1];
    if (number !== undefined && path !== "") add(path, { line: number, text });
    else if (flat !== null) add(flat[1] ?? "", { line: flat[2] ?? "", text: flat[3] ?? "" });
    else if (head !== undefined) path = head;
    else if (PATH.test(line)) add(line);
  }
  return files.size === 0 ? null : [...files].map(([name, hits]) => ({ path: name, hits }));
};

const JSON_MAX = 32_000;

/** An input in its own form, for a tool that the page does not know. */
export const inputText = (input: unknown): string => {
  const values = typeof input === "object" && input !== null ? Object.values(input) : [input];
  const [only] = values;
  const text =
    values.length === 1 && typeof only === "string" ? only : (JSON.stringify(input, null, 2) ?? "");
  return text.length > JSON_MAX ? `${text.slice(0, JSON_MAX)}…` : text;
};
