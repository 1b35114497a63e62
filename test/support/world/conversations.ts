/** Reports of a daemon, as a test writes them, and readers of a conversation. */
import * as Effect from "effect/Effect";
import { NO_USAGE, type NativeItem, type Usage } from "../../../src/domain/conversation/conversation.ts";
import {
  Conversations,
  type ChangedConversation,
  type ConversationChange,
  type ConversationState,
  type Item,
  type NotedReport,
} from "../../../src/store/ports/sessions/conversations.ts";
import { admitSession, openSandbox, tellSandbox } from "./sessions.ts";
import { NOON, type World } from "./world.ts";

/** A finished answer of the agent. */
export const nativeItem = (native_id: string, rev: number, fields: Partial<NativeItem> = {}): NativeItem => ({
  native_id,
  rev,
  kind: "message",
  role: "agent",
  status: "completed",
  message_id: null,
  turn_id: null,
  parent_id: null,
  content: [{ type: "text", text: `text of ${native_id} at ${rev}` }],
  tool: null,
  plan: [],
  request: null,
  model: null,
  usage: null,
  error: null,
  created_at: NOON,
  completed_at: NOON,
  ...fields,
});

/** A call of a tool that prints this. */
export const nativeTool = (native_id: string, rev: number, output: string): NativeItem =>
  nativeItem(native_id, rev, {
    kind: "tool",
    content: [],
    tool: {
      name: "bash",
      kind: "execute",
      title: "List files",
      input: { command: "ls" },
      output,
      truncated: false,
      changes: [],
    },
  });

export const tokens = (input_tokens: number, cost_usd: number): Usage => ({
  ...NO_USAGE,
  input_tokens,
  cost_usd,
});

/** A session whose conversation is open, with its live sandbox. */
export const converse = Effect.fnUntraced(function* (world: World) {
  const sessionId = yield* admitSession(world);
  const { id: sandboxId } = yield* openSandbox(sessionId);
  yield* (yield* Conversations).open(sessionId, NOON);
  return { sessionId, sandboxId };
});

/** Ends the session's sandbox and starts another one. */
export const replaceSandbox = Effect.fnUntraced(function* (sessionId: string, sandboxId: string) {
  yield* tellSandbox(sandboxId, { type: "stop.requested" });
  return (yield* openSandbox(sessionId)).id;
});

export const report = (
  sandboxId: string,
  rev: number,
  fields: Partial<Omit<NotedReport, "sandboxId" | "rev">> = {},
): NotedReport => ({ sandboxId, rev, items: [], turn: null, now: NOON, ...fields });

/** The items of a write, in order. */
export const itemsOf = (changed: ChangedConversation | null): readonly Item[] =>
  (changed?.changes ?? []).flatMap((change) => (change.type === "item" ? [change.item] : []));

/** A reader of a conversation: the last version of everything that it was told. */
export class Reader {
  readonly items = new Map<string, Item>();
  state: ConversationState | null = null;
  seq = 0;

  /** Adds items of a page. A version that is known to be later stays. */
  addPage(items: readonly Item[]): void {
    for (const item of items)
      if ((this.items.get(item.id)?.seq ?? 0) < item.seq) this.items.set(item.id, item);
  }

  apply(changes: readonly ConversationChange[]): void {
    for (const change of changes) {
      if (change.type === "item") this.items.set(change.item.id, change.item);
      else this.state = { turn: change.turn, usage: change.usage, held: change.held };
      this.seq = change.seq;
    }
  }
}
