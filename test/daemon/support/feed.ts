/** A feed of the conversation in the test's own process, and items for it. */
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import { ConversationFeed } from "../../../daemon/conversation/feed.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import type { NativeItem } from "../../../src/domain/conversation/conversation.ts";
import { Follower } from "./follower.ts";

/** A feed with the clock in the test's hand. */
export const startFeed = (secrets: readonly string[] = []) => {
  let nowMs = 0;
  let timers: { atMs: number; run: () => void }[] = [];
  const redactor = new Redactor(secrets);
  const feed = new ConversationFeed({
    redactor,
    now: () => nowMs,
    after: (ms, run) => {
      const timer = { atMs: nowMs + ms, run };
      timers.push(timer);
      return () => void (timers = timers.filter((other) => other !== timer));
    },
  });
  const pass = (ms: number): void => {
    nowMs += ms;
    const due = timers.filter(({ atMs }) => atMs <= nowMs);
    timers = timers.filter(({ atMs }) => atMs > nowMs);
    for (const { run } of due) run();
  };
  /** A reader that takes what there is when the test says so. */
  const read = (after = 0) => {
    const follower = new Follower();
    follower.rev = after;
    const reader = feed.attach(after, () => undefined);
    const takeAll = (): Follower => {
      for (let lines = reader.take(1000); lines !== ""; lines = reader.take(1000)) follower.take(lines);
      return follower;
    };
    return { follower, reader, takeAll };
  };
  const versions = (): readonly NativeItem[] => [...feed.versionsAfter(0)];
  return { feed, redactor, pass, read, versions };
};

/** A closed message, with what differs from it. */
export const item = (id: string, change: Partial<ItemDraft> = {}): ItemDraft => ({
  native_id: id,
  kind: "message",
  role: "agent",
  status: "completed",
  message_id: null,
  turn_id: "turn",
  parent_id: null,
  content: [{ type: "text", text: `text of ${id}` }],
  tool: null,
  plan: [],
  request: null,
  model: "a/b",
  usage: null,
  error: null,
  created_at: 1,
  completed_at: 2,
  ...change,
});
/** A message whose text goes on. */
export const growing = (id: string, text: string): ItemDraft =>
  item(id, { status: "running", completed_at: null, content: [{ type: "text", text }] });
/** A shell command. */
export const tool = (id: string, output: string, status: ItemDraft["status"] = "completed"): ItemDraft =>
  item(id, {
    kind: "tool",
    status,
    content: [],
    tool: { name: "bash", kind: "execute", title: null, input: {}, output, truncated: false, changes: [] },
  });
