/**
 * A whole conversation: as JSON for archives, and as Markdown for people. Both are sent page by page, oldest first.
 *
 * Texts stand in quotations, so that no text can pass for another speaker's heading.
 */
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { OUTPUT_KEPT_MAX } from "../../domain/conversation/conversation.ts";
import {
  Conversations,
  type Conversation,
  type ConversationPage,
  type Item,
} from "../../store/ports/sessions/conversations.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { itemWire, turnWire } from "../steps/sessions/conversation-wire.ts";
import { instant } from "../steps/wire.ts";

/** How many items are in memory at a time. */
const PAGE = 50;

/** Cursors of all pages, the oldest page's first. The newest page's cursor is null. */
const readCursors = Effect.fnUntraced(function* (sessionId: string) {
  const { page } = yield* Conversations;
  const cursors: (string | null)[] = [null];
  for (;;) {
    const portion = yield* page(sessionId, { before: cursors[0] ?? null, limit: PAGE });
    if (portion === null || portion.nextCursor === null) return cursors;
    cursors.unshift(portion.nextCursor);
  }
});

/** The item with the whole stored output of its tool. */
const whole = Effect.fnUntraced(function* (sessionId: string, item: Item) {
  if (item.tool === null || !item.tool.truncated) return item;
  const output = yield* (yield* Conversations).output(sessionId, item.id);
  if (output === null) return item;
  const truncated = Buffer.byteLength(output) >= OUTPUT_KEPT_MAX;
  return { ...item, tool: { ...item.tool, output, truncated } };
});

/**
 * The newest page, and the items that came or moved to the end since the cursors were read.
 *
 * @param down the cursor of the page before it, or null if the conversation had one page.
 */
const newest = Effect.fnUntraced(function* (sessionId: string, down: string | null) {
  const { page } = yield* Conversations;
  const items: Item[] = [];
  for (let before: string | null = null; ;) {
    const portion: ConversationPage | null = yield* page(sessionId, { before, limit: PAGE });
    const later = (portion?.items ?? []).filter(({ place }) => place >= Number(down ?? 0));
    items.push(...later);
    if (portion === null || portion.nextCursor === null || later.length < PAGE) return items;
    before = portion.nextCursor;
  }
});

/**
 * All items, oldest first, each once. Items only leave an older page, because new and moved ones are at the end. An item
 * that moves meanwhile stays where it was read first.
 */
const allItems = (sessionId: string) => {
  const ids = new Set<string>();
  const pageAt = (before: string | null, down: string | null) =>
    Effect.gen(function* () {
      const { page } = yield* Conversations;
      const items =
        before === null
          ? yield* newest(sessionId, down)
          : ((yield* page(sessionId, { before, limit: PAGE }))?.items ?? []);
      const fresh = items.filter(({ id }) => !ids.has(id));
      for (const { id } of fresh) ids.add(id);
      return fresh.toReversed();
    });
  return Stream.unwrap(
    Effect.map(readCursors(sessionId), (cursors) =>
      Stream.fromIterable(cursors.map((cursor, index) => [cursor, cursors[index - 1] ?? null] as const)),
    ),
  ).pipe(
    Stream.mapEffect(([before, down]) => pageAt(before, down)),
    Stream.flatMap(Stream.fromIterable),
    Stream.mapEffect((item) => whole(sessionId, item)),
  );
};

/** `{session_id, seq, state, usage, items}`. */
export const conversationJson = (conversation: Conversation) => {
  const { id, seq, turn, usage } = conversation;
  const head = JSON.stringify({ session_id: id, seq, state: turnWire(turn), usage });
  return Stream.concat(
    Stream.succeed(`${head.slice(0, -1)},"items":[`),
    Stream.concat(
      allItems(id).pipe(
        Stream.zipWithIndex,
        Stream.map(([item, index]) => `${index === 0 ? "\n" : ",\n"}${JSON.stringify(itemWire(item))}`),
      ),
      Stream.succeed("\n]}\n"),
    ),
  );
};

/** One line of text between Markdown: no character of it is markup. */
const inline = (text: string): string =>
  text
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll(/[\\`*_[\]<>#|~&!]/g, String.raw`\$&`);

const quote = (text: string): string =>
  text
    .split(/\r\n|\r|\n/)
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");

/** The text in a block whose fence is longer than any in the text. */
const fenceText = (text: string): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
};

const contentText = ({ content }: Item): string =>
  content.map((part) => (part.type === "text" ? part.text : `[file: ${part.name}]`)).join("\n");

const speaker = ({ author, role }: Item): string =>
  inline(author?.name ?? "") || (role === "agent" ? "Agent" : "User");

const minute = (at: number): string => `${instant(at).slice(0, 16).replace("T", " ")} UTC`;

const toolText = ({ tool, status }: Item): string => {
  if (tool === null) return "";
  const { name, title, output, truncated, changes } = tool;
  const line = `**Tool** ${inline(name)}${title === null ? "" : `: ${inline(title)}`} (${status})`;
  const files = changes.map(({ operation, path }) => `- ${operation} ${inline(path)}`).join("\n");
  const block = output === "" ? "" : fenceText(truncated ? `${output}\n[cut]\n` : output);
  return [line, files, block].filter((part) => part !== "").join("\n\n");
};

const MARKS = { pending: "[ ]", running: "[ ]", completed: "[x]", cancelled: "[-]" } as const;

const itemBody = (item: Item): string => {
  const text = contentText(item);
  if (item.kind === "tool") return toolText(item);
  if (item.kind === "plan")
    return ["**Plan**", item.plan.map((entry) => `- ${MARKS[entry.status]} ${inline(entry.text)}`).join("\n")]
      .filter((part) => part !== "")
      .join("\n\n");
  if (item.kind === "request")
    return [
      `**Request** ${inline(item.request?.title ?? "")} (${item.status})`,
      ...(item.request?.questions ?? []).map((question) => quote(question.text)),
    ].join("\n\n");
  if (item.kind === "message") return `## ${speaker(item)}, ${minute(item.createdAt)}\n\n${quote(text)}`;
  return `**${{ thought: "Thought", note: "Note" }[item.kind]}**\n\n${quote(text)}`;
};

const itemText = (item: Item): string => {
  const error = item.error === null ? "" : `**Error** ${inline(item.error.message)} (${item.error.code})`;
  const notice = item.pruned ? "Content was removed to make room for newer items." : "";
  return [itemBody(item), error, notice].filter((part) => part !== "").join("\n\n");
};

export const conversationMarkdown = ({ id, name, createdAt }: Session) =>
  Stream.concat(
    Stream.succeed(`# ${inline(name ?? "") || "Conversation"}\n\nSession ${id}, ${minute(createdAt)}\n`),
    Stream.map(allItems(id), (item) => `\n${itemText(item)}\n`),
  );
