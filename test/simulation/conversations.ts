/** The invariants of conversations (store/ports/conversations.ts N1 to N3). */
import { isClosed, type ItemStatus } from "../../src/domain/conversation.ts";
import type { ConversationRow, TableSet } from "../../src/store/memory/tables.ts";
import type { Call } from "./boundary.ts";
import { isLiveSandbox } from "./owners.ts";
import type { World } from "./world.ts";

/** Within this time of calm, ms, the service keeps an item: longer than the longest pause between two tries. */
const KEPT_WITHIN_MS = 60_000;
const WRITES = new Set(["open", "note", "close"]);

interface Former {
  readonly seq: number;
  readonly statuses: ReadonlyMap<string, ItemStatus>;
}

const formerOf = ({ conversation, items }: ConversationRow): Former => ({
  seq: conversation.seq,
  statuses: new Map([...items.values()].map(({ id, status }) => [id, status])),
});

/** N1, N3: from what a conversation was to what it is. */
const moveFaults = (id: string, former: Former | undefined, now: ConversationRow): readonly string[] => {
  const { seq, turnSeq } = now.conversation;
  const items = [...now.items.values()];
  const numbers = new Set(items.map((item) => item.seq));
  const isOrdered = numbers.size === items.length && [...numbers, turnSeq].every((number) => number <= seq);
  const reopened = items.filter(({ id: item, status }) => {
    const was = former?.statuses.get(item);
    return was !== undefined && isClosed(was) && status !== was;
  });
  return [
    ...((former?.seq ?? 0) > seq ? [`N1 the number of conversation ${id} moved back`] : []),
    ...(isOrdered ? [] : [`N1 two versions of conversation ${id} have one number, or one above the last`]),
    ...reopened.map((item) => `N3 the closed item ${item.id} became ${item.status}`),
  ];
};

/** Looks at a conversation after every write to it. */
export class ConversationWatch {
  readonly #former = new Map<string, Former>();

  look({ port, operation, about }: Call, { conversations }: TableSet): readonly string[] {
    if (port !== "store.Conversations" || !WRITES.has(operation)) return [];
    const row = conversations.get(about);
    if (row === undefined) return [];
    const faults = moveFaults(about, this.#former.get(about), row);
    this.#former.set(about, formerOf(row));
    return faults;
  }
}

/** At rest, the items of live sandboxes are kept, and the items of ended sandboxes are closed. */
export const conversationFaults = ({ tables, daemons: { talks }, time }: World): readonly string[] =>
  [...tables.conversations].flatMap(([sessionId, { items }]) => {
    const session = tables.sessions.get(sessionId)?.record;
    const kept = new Map([...items.values()].map((item) => [item.nativeId, item.rev]));
    const sandboxId = session?.status === "running" ? session.sandboxId : null;
    const said = sandboxId === null ? [] : talks.saidBy(sandboxId, time.elapsed - KEPT_WITHIN_MS);
    const lost = said.filter(({ native_id: id, rev }) => (kept.get(id) ?? 0) < rev);
    const open = [...items.values()].filter(({ sandboxId: of, status }) => {
      const sandbox = tables.sandboxes.get(of ?? "")?.record;
      return sandbox !== undefined && !isLiveSandbox(sandbox.status) && !isClosed(status);
    });
    const lacking = lost.map(({ native_id: id }) => `N1 conversation ${sessionId} lacks the item ${id}`);
    const left = open.map(
      ({ id }) => `N3 the item ${id} of conversation ${sessionId} is open after its sandbox`,
    );
    return lacking.concat(left);
  });
