/**
 * Turns the updates of the Agent Client Protocol into items of the conversation. The protocol has no listing, so the
 * updates are the only record.
 *
 *  R1 An item's id is a number of this record. Ids of the agent's tool calls may come again in a later turn.
 *  R2 At most one text of the agent is open, and one of each sub-agent. It ends when the same one begins something else. A sub-agent may work
 *     beside the agent.
 *  R3 When a turn ends, its items end.
 *  R4 A late update of a former turn's tool call changes nothing.
 *  R5 The turn's usage is in its last item, with how full the context is then.
 */
import { randomBytes } from "node:crypto";
import type { ContentBlock, RequestPermissionRequest, SessionUpdate } from "@agentclientprotocol/sdk";
import {
  EMPTY_ITEM,
  TEXT_KEPT_MAX,
  type ContentPart,
  type ItemError,
  planRequest,
  type ProposedPlan,
} from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { cutText } from "../../../src/domain/text.ts";
import { type ConversationObserver, type ItemDraft, NO_OBSERVER } from "../adapter.ts";
import {
  type Asking,
  readRequest,
  mergeCall,
  parentCall,
  planEntries,
  proposedPlan,
  toolCallItem,
  type HeldCall,
} from "./items.ts";

/** A message as it is handed over. */
export interface Sent {
  /** Our id. */
  readonly messageId: string;
  readonly content: readonly ContentPart[];
  /** The model that answers it. Null if not known. */
  readonly model: string | null;
  /** The agent gets it again: people see it once, and its turn goes on. */
  readonly isAgain?: boolean;
}

interface Text {
  readonly draft: ItemDraft;
  /** The agent's id of the message. Null if it gives none. */
  readonly key: string | null;
  text: string;
  /** How many characters were left out behind it. */
  dropped: number;
}

interface Tool {
  readonly draft: ItemDraft;
  readonly call: HeldCall;
}

interface Turn {
  /** The id of the message that began it. Null if the agent tells something outside of any turn. */
  readonly id: string | null;
  readonly model: string | null;
  /** Open texts (R2), by the agent's id of the call whose sub-agent says it. Null if the agent itself does. */
  readonly texts: Map<string | null, Text>;
  /** Open calls, by the agent's ids. */
  readonly tools: Map<string, Tool>;
  /** The agent's ids of calls that have ended. */
  readonly over: Set<string>;
  /** The ids of the items of all calls, by the agent's ids. */
  readonly ids: Map<string, string>;
  plan: string | null;
  /** The file that the agent wrote last. Null if it wrote none. */
  written: { readonly path: string; readonly text: string } | null;
  /** The newest item of the agent. */
  last: ItemDraft | null;
  /** It is being stopped: what fails now is interrupted. */
  isStopping: boolean;
}

/** What a turn used. */
export type Spent = Pick<ItemDraft, "usage" | "context">;

/** How a turn's open items end. */
export interface ItemEnd {
  readonly status: "completed" | "failed" | "interrupted";
  readonly error: ItemError | null;
}

const COMPLETED: ItemEnd = { status: "completed", error: null };

const newTurn = (id: string | null, model: string | null): Turn => ({
  id,
  model,
  texts: new Map(),
  tools: new Map(),
  over: new Set(),
  ids: new Map(),
  plan: null,
  written: null,
  last: null,
  isStopping: false,
});

export class AcpConversation {
  /** Paths below it are shown relative to it. */
  readonly #workspace: string;
  readonly #prefix = `acp_${randomBytes(6).toString("hex")}`;
  #count = 0;
  #observer: ConversationObserver = NO_OBSERVER;
  #now: () => number = () => 0;
  #turn = newTurn(null, null);
  /** The id of the newest turn. */
  #begun: string | null = null;
  readonly #requests = new Map<string, ItemDraft>();

  /** The title of a request with which a plan's file is named, up to the file (PlanMode.asks). */
  readonly #planTitle: string | null;

  constructor(workspace: string, planTitle: string | null = null) {
    this.#workspace = workspace;
    this.#planTitle = planTitle;
  }

  /** @param now ms since the epoch */
  connected(observer: ConversationObserver, now: () => number): void {
    this.#observer = observer;
    this.#now = now;
  }

  /** A turn begins with this message. */
  begin({ messageId, content, model, isAgain = false }: Sent): void {
    if (isAgain && this.#begun !== null) {
      this.#turn = newTurn(this.#begun, model);
      return;
    }
    const id = this.#nextId();
    this.#begun = id;
    this.#turn = newTurn(id, model);
    this.#observer.item({
      ...this.#frame("message", id),
      message_id: messageId,
      role: "user",
      status: "completed",
      turn_id: id,
      content,
      model: null,
      completed_at: this.#now(),
    });
  }

  /** Tells people something that neither they nor the agent said. */
  note(text: string): void {
    this.#observer.item({
      ...this.#frame("note", this.#nextId()),
      role: null,
      status: "completed",
      turn_id: null,
      content: [{ type: "text", text }],
      model: null,
      completed_at: this.#now(),
    });
  }

  /** The turn is being stopped. */
  stopping(): void {
    this.#turn.isStopping = true;
  }

  /** Whether a tool runs. */
  get isToolOpen(): boolean {
    return this.#turn.tools.size > 0;
  }

  /** The agent's own open text. Empty: it has none. */
  get saying(): string {
    return this.#turn.texts.get(null)?.text ?? "";
  }

  take(update: SessionUpdate): void {
    if (update.sessionUpdate === "agent_message_chunk") this.#said("message", update);
    else if (update.sessionUpdate === "agent_thought_chunk") this.#said("thought", update);
    else if (update.sessionUpdate === "tool_call") this.#tool(update, true);
    else if (update.sessionUpdate === "tool_call_update") this.#tool(update, false);
    else if (update.sessionUpdate === "plan") this.#plan(update.entries);
    else if (update.sessionUpdate === "session_info_update" && update.title)
      this.#observer.titled(update.title);
  }

  /** A permission is asked for this call. It is shown, if the agent has not told it before. */
  asked(call: RequestPermissionRequest["toolCall"]): void {
    const { tools, over } = this.#turn;
    if (!tools.has(call.toolCallId) && !over.has(call.toolCallId))
      this.#tool({ ...call, status: "pending", sessionUpdate: "tool_call_update" }, true);
  }

  /** The plan that the agent asks to carry out. Null if it asks for something else. */
  proposed(request: RequestPermissionRequest): ProposedPlan | null {
    const title = request.toolCall.title ?? "";
    if (this.#planTitle === null || !title.startsWith(this.#planTitle)) return proposedPlan(request, null);
    const path = title.slice(this.#planTitle.length);
    const { written } = this.#turn;
    return proposedPlan(request, written?.path === path ? written.text : `The plan is in the file ${path}.`);
  }

  /** The agent asks for a permission. People see it when it is shown, or settled. */
  ask(request: RequestPermissionRequest): {
    readonly id: string;
    readonly rule: Asking["rule"];
    readonly what: string;
  } {
    const id = this.#nextId();
    const tool = this.#turn.tools.get(request.toolCall.toolCallId);
    const plan = this.proposed(request);
    const asking: Asking =
      plan === null
        ? readRequest(request, tool?.call ?? null, this.#workspace)
        : { request: planRequest(plan), rule: null };
    this.#requests.set(id, {
      ...this.#frame("request", id),
      parent_id: tool?.draft.parent_id ?? null,
      status: "pending",
      request: asking.request,
    });
    const { command, patterns, title } = asking.request;
    return { id, rule: asking.rule, what: command ?? patterns[0] ?? title };
  }

  /** A request waits for a person. */
  show(id: string): void {
    const draft = this.#requests.get(id);
    if (draft !== undefined) this.#report(draft);
  }

  /** A request ends. @param answer as the agent got it */
  settle(id: string, status: "completed" | "interrupted", answer: string): void {
    const draft = this.#requests.get(id);
    if (draft === undefined) return;
    this.#requests.delete(id);
    const content: readonly ContentPart[] = answer === "" ? [] : [{ type: "text", text: answer }];
    this.#report({ ...draft, status, content, completed_at: this.#now() });
  }

  /** R3. */
  end(end: ItemEnd, usage: Spent): void {
    const turn = this.#turn;
    const hadText = turn.texts.has(null);
    this.#endText(null, end);
    // The agent did not say how a sub-agent or a tool ended, but only that the turn did.
    const status = end.status === "failed" ? "interrupted" : end.status;
    for (const parent of turn.texts.keys()) this.#endText(parent, { status, error: null });
    for (const [id, { draft, call }] of turn.tools) {
      turn.over.add(id);
      this.#report({ ...this.#toolItem(draft, call), status, error: null, completed_at: this.#now() });
    }
    turn.tools.clear();
    const isTold = end.error === null || hadText;
    if (!isTold || (usage.usage !== null && turn.last === null))
      this.#report({ ...this.#frame("message", this.#nextId()), ...end, completed_at: this.#now() });
    const isSpent = usage.usage !== null || usage.context !== undefined;
    if (isSpent && turn.last !== null) this.#report({ ...turn.last, ...usage });
    // Late tellings about this turn's calls are still known as such (R4).
    this.#turn = { ...newTurn(null, turn.model), over: turn.over, ids: turn.ids };
  }

  /** The agent has ended what it was asked, and its turn goes on with another text. */
  goOn(end: ItemEnd, usage: Spent): void {
    this.end(end, usage);
    this.#turn = { ...this.#turn, id: this.#begun };
  }

  /** The process is gone. Its open items are ended by the feed. */
  lost(): void {
    this.#turn = newTurn(null, null);
    this.#requests.clear();
  }

  #nextId(): string {
    this.#count += 1;
    return `${this.#prefix}_${String(this.#count).padStart(8, "0")}`;
  }

  /** The item of a call. Null if this turn has no such call. */
  #itemOf(call: string | null): string | null {
    return call === null ? null : (this.#turn.ids.get(call) ?? null);
  }

  #frame(kind: ItemDraft["kind"], id: string) {
    return {
      ...EMPTY_ITEM,
      native_id: id,
      kind,
      role: "agent" as const,
      turn_id: this.#turn.id,
      model: this.#turn.model,
      created_at: this.#now(),
      completed_at: null,
    };
  }

  #report(draft: ItemDraft): void {
    const { last } = this.#turn;
    if (last === null || draft.native_id >= last.native_id) this.#turn.last = draft;
    this.#observer.item(draft);
  }

  #said(
    kind: "message" | "thought",
    update: { readonly content: ContentBlock; readonly messageId?: string | null; readonly _meta?: unknown },
  ): void {
    const { content, messageId } = update;
    const chunkText = blockText(content);
    if (chunkText === "") return;
    const key = messageId ?? null;
    const parent = parentCall(update);
    const open = this.#turn.texts.get(parent);
    if (open === undefined || open.draft.kind !== kind || open.key !== key) {
      this.#endText(parent, COMPLETED);
      const text = cutText(chunkText, TEXT_KEPT_MAX);
      const draft = {
        ...this.#frame(kind, this.#nextId()),
        parent_id: this.#itemOf(parent),
        status: "running" as const,
        content: [{ type: "text" as const, text }],
      };
      this.#turn.texts.set(parent, { draft, key, text, dropped: chunkText.length - text.length });
      this.#report(draft);
    } else {
      // After a cut nothing follows, however short.
      const room = open.dropped > 0 ? 0 : TEXT_KEPT_MAX - open.text.length;
      const text = cutText(chunkText, room);
      open.dropped += chunkText.length - text.length;
      if (text === "") return;
      this.#observer.grown({ native_id: open.draft.native_id, offset: open.text.length, text });
      open.text += text;
    }
    // Outside of a turn nothing would end it.
    if (this.#turn.id === null) this.#endText(parent, COMPLETED);
  }

  /** R2. */
  #endText(parent: string | null, end: ItemEnd): void {
    const open = this.#turn.texts.get(parent);
    if (open === undefined) return;
    this.#turn.texts.delete(parent);
    const content = [{ type: "text" as const, text: open.text }];
    const { draft, dropped } = open;
    const cut = dropped > 0 ? { dropped } : {};
    this.#report({ ...draft, ...end, ...cut, content, completed_at: this.#now() });
  }

  #tool(
    update: Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>,
    isNew: boolean,
  ): void {
    const turn = this.#turn;
    const { toolCallId: id } = update;
    const tool = turn.tools.get(id);
    // R4.
    if (tool === undefined && (turn.id === null || (!isNew && turn.over.has(id)))) return;
    const parent = parentCall(update);
    if (tool === undefined) this.#endText(parent, COMPLETED);
    const draft = tool?.draft ?? {
      ...this.#frame("tool", this.#nextId()),
      parent_id: this.#itemOf(parent),
      status: "pending" as const,
    };
    turn.ids.set(id, draft.native_id);
    const call = mergeCall(tool?.call ?? null, update);
    const item = this.#toolItem(draft, call);
    if (isClosed(item.status)) {
      turn.tools.delete(id);
      turn.over.add(id);
    } else turn.tools.set(id, { draft, call });
    const diff = call.content.findLast((part) => part.type === "diff" && "newText" in part);
    if (diff !== undefined) turn.written = { path: diff.path, text: diff.newText };
    this.#report(item);
  }

  #toolItem(draft: ItemDraft, call: HeldCall): ItemDraft {
    return toolCallItem(draft, call, {
      workspace: this.#workspace,
      isStopping: this.#turn.isStopping,
      nowMs: this.#now(),
    });
  }

  #plan(entries: Parameters<typeof planEntries>[0]): void {
    this.#turn.plan ??= this.#nextId();
    this.#report({
      ...this.#frame("plan", this.#turn.plan),
      status: "completed",
      plan: planEntries(entries),
      completed_at: this.#now(),
    });
  }
}

const blockText = (content: ContentBlock): string => {
  if (content.type === "text" && "text" in content && typeof content.text === "string") return content.text;
  if (content.type === "resource_link" && "uri" in content) return String(content.uri);
  return "";
};
