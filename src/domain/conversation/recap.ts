/**
 * The recap of a conversation: a summary for a runtime that cannot get the conversation itself (history.ts). The items that the
 * service keeps are enough for it. The former sandbox may be lost.
 *
 *  R1 A message that the runtime does not have yet is not part of it: the runtime gets it as a message.
 *  R2 It has at most `RECAP_MAX` bytes. The first message and the newest items stay; a line says if others are left out.
 *  R3 It has no output and no input of tools: the workspace shows what they did.
 */
import type {
  AgentRequest,
  Author,
  ContentPart,
  ItemKind,
  ItemStatus,
  PlanEntry,
  ToolCall,
} from "./conversation.ts";
import type { RequestAnswer } from "./steering.ts";
import { cutText } from "../text.ts";

/** The longest recap, in bytes of UTF-8. */
export const RECAP_MAX = 48 * 1024;
/** How much of one entry is shown, in UTF-16 code units. */
const ENTRY_SHOWN = 6_000;
/** How much of a title, a question or an answer is shown. */
const LINE_SHOWN = 300;

/** What a recap needs of an item. */
export interface Recalled {
  readonly kind: ItemKind;
  readonly status: ItemStatus;
  readonly role: "user" | "agent" | null;
  readonly author: Author | null;
  readonly parentId: string | null;
  readonly content: readonly ContentPart[];
  readonly tool: ToolCall | null;
  readonly plan: readonly PlanEntry[];
  readonly request: AgentRequest | null;
  readonly answer: { readonly answer: RequestAnswer } | null;
  readonly createdAt: number;
}

const INTRODUCTION =
  "This session continues in a new sandbox. You took part in its conversation before, but you do not have that " +
  "conversation any more. Below is a summary of it, oldest first, without the output of tools. " +
  "Do not answer this message. Use it to understand what people ask next.";

/** In its place for a session that begins from another one. */
export const begunIntroduction = (title: string): string =>
  `This session began from another one, "${title}", and its workspace from that one's work. Below is a summary of that one's ` +
  "conversation up to there, oldest first, without the output of tools. Do not answer this message. Use it to understand what people ask next.";

/** Before a summary of what came before a restored conversation (history.ts). */
export const EARLIER =
  "Below is a summary of the beginning of this conversation, oldest first, without the output of tools. " +
  "The conversation itself follows. Do not answer this message.";

/**
 * @param items the first message and the newest items, oldest first
 * @param hasGap whether there are other items between them
 * @returns null if no runtime has had any item
 */
export const makeRecap = (
  items: readonly Recalled[],
  hasGap: boolean,
  introduction = INTRODUCTION,
): string | null => {
  const lines = items.map(renderItem).filter((line) => line !== "");
  if (lines.length === 0) return null;
  const [first = "", ...others] = lines;
  let room = RECAP_MAX - [introduction, first, LEFT_OUT].reduce((sum, text) => sum + takenBy(text), 0);
  const entries: string[] = [];
  for (const line of others.toReversed()) {
    room -= takenBy(line);
    if (room < 0) break;
    entries.unshift(line);
  }
  const gap = hasGap || entries.length < others.length ? [LEFT_OUT] : [];
  return [introduction, first, ...gap, ...entries].join(SEPARATOR);
};

const SEPARATOR = "\n\n";
const LEFT_OUT = "[Earlier entries are left out here.]";
const takenBy = (text: string): number => Buffer.byteLength(text) + SEPARATOR.length;

/** The runtime has never seen a message in one of these states (R1). */
export const UNSEEN: ReadonlySet<ItemStatus> = new Set(["queued", "sending", "cancelled"]);
const USUAL: ReadonlySet<ItemStatus> = new Set(["accepted", "completed"]);

const renderItem = (item: Recalled): string => {
  // The tool call that started a subagent stands for its work.
  if (UNSEEN.has(item.status) || item.parentId !== null) return "";
  const text = renderBody(item);
  if (text === "") return "";
  const state = USUAL.has(item.status) ? "" : ` (${item.status})`;
  const excerpt = text.length <= ENTRY_SHOWN ? text : `${cutText(text, ENTRY_SHOWN)} [cut]`;
  return `[${new Date(item.createdAt).toISOString().slice(0, 16).replace("T", " ")} UTC] ${excerpt}${state}`;
};

const short = (text: string): string => cutText(text.replaceAll(/\s+/g, " ").trim(), LINE_SHOWN);

const renderBody = (item: Recalled): string => {
  switch (item.kind) {
    case "message":
      return messageText(item);
    case "tool":
      return item.tool === null ? "" : `You used ${item.tool.name}: ${short(item.tool.title ?? "")}`;
    case "plan":
      return item.plan.length === 0
        ? ""
        : `Your plan: ${item.plan.map(({ text, status }) => `${short(text)} (${status})`).join("; ")}`;
    case "request":
      return requestText(item);
    case "thought":
    case "note":
      return "";
  }
};

const messageText = ({ role, author, content }: Recalled): string => {
  const text = content
    .map((part) => (part.type === "text" ? part.text : `[file: ${part.name}]`))
    .join("\n")
    .trim();
  if (text === "") return "";
  return role === "agent" ? `You: ${text}` : `${author?.name ?? "Somebody"}: ${text}`;
};

const requestText = ({ request, answer }: Recalled): string => {
  if (request === null) return "";
  if (request.kind === "plan") return `You proposed a plan - ${answerText(answer?.answer)}`;
  const what =
    request.kind === "permission"
      ? `for a permission: ${short(request.title)}`
      : request.questions.map(({ text }) => short(text)).join(" ");
  return `You asked ${what} - ${answerText(answer?.answer)}`;
};

const NO_ANSWER = "No person answered.";

const answerText = (answer: RequestAnswer | undefined): string => {
  if (answer === undefined) return NO_ANSWER;
  if ("answers" in answer) return `The answer: ${short(answer.answers.flat().join(", "))}.`;
  if ("declined" in answer) return NO_ANSWER;
  if ("approve" in answer) return "A person approved it.";
  const why = answer.message === null ? "" : ` (${short(answer.message)})`;
  return `The answer: ${answer.choice}${why}.`;
};
