/** A conversation in wire format: its items, its turn, and the pages and events that have them. */
import { NO_USAGE, type Author } from "../../../domain/conversation/conversation.ts";
import type {
  ConversationPage,
  ConversationState,
  Item,
  Turn,
} from "../../../store/ports/sessions/conversations.ts";
import type { Session } from "../../../store/ports/sessions/sessions.ts";
import { instant, instantOrNull } from "../wire.ts";

const authorWire = (author: Author) => ({
  kind: author.kind,
  user_id: author.userId,
  name: author.name,
  trigger_slug: author.triggerSlug,
  fire_id: author.fireId,
});

/** The answer to a request, and who gave it. */
export const answerWire = (answer: Item["answer"]) =>
  answer === null
    ? null
    : { by: answer.by === null ? null : authorWire(answer.by), at: instant(answer.at), ...answer.answer };

export const itemWire = (item: Item) => ({
  id: item.id,
  seq: item.seq,
  rev: item.rev,
  place: item.place,
  kind: item.kind,
  role: item.role,
  author: item.author === null ? null : authorWire(item.author),
  turn_id: item.turnId,
  parent_id: item.parentId,
  sandbox_id: item.sandboxId,
  status: item.status,
  content: item.content,
  tool: item.tool,
  plan: item.plan,
  request: item.request,
  answer: answerWire(item.answer),
  model: item.model,
  agent: item.agent,
  ...(item.effort !== undefined && { effort: item.effort }),
  usage: item.usage,
  ...(item.context !== undefined && { context: item.context }),
  ...(item.compacts === true && { compacts: true as const }),
  error: item.error,
  pruned: item.pruned,
  truncated: false,
  created_at: instant(item.createdAt),
  completed_at: instantOrNull(item.completedAt),
});
export type ItemWire = ReturnType<typeof itemWire>;

export const turnWire = (turn: Turn) => ({
  state: turn.state,
  since: instant(turn.since),
  waiting_for: turn.waitingFor,
});

export const conversationWire = ({ conversation, ...page }: ConversationPage) => ({
  items: page.items.map(itemWire),
  state: turnWire(conversation.turn),
  queue: page.queue.map(itemWire),
  requests: page.requests.map(itemWire),
  queue_held: conversation.held,
  usage: conversation.usage,
  seq: conversation.seq,
  next_cursor: page.nextCursor,
});

/** What a session's row shows of its conversation. A session whose conversation was never opened rests. */
export const conversationStateWire = (session: Session, state: ConversationState | null) => ({
  turn: turnWire(state?.turn ?? { state: "idle", since: session.createdAt, waitingFor: null }),
  usage: state?.usage ?? NO_USAGE,
});
