/** The invariants of conversations (src/store/ports/sessions/conversations.ts N1 to N4). */
import { isDeepStrictEqual } from "node:util";
import type { ItemStatus } from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import type { ConversationRow, TableSet } from "../../twins/store/tables.ts";
import type { NewApproval } from "../../../src/features/approvals/ports/approvals.ts";
import type { Item, NotedReport } from "../../../src/store/ports/sessions/conversations.ts";
import type { Call } from "./boundary.ts";
import { isLiveSandbox } from "./owners.ts";
import type { Talks } from "./talks.ts";
import type { World } from "../world.ts";

/** Within this time of calm, ms, the service keeps an item: longer than the longest pause between two tries. */
const KEPT_WITHIN_MS = 60_000;
const WRITES = new Set(["open", "note", "close"]);
/** Operations on approvals that add a note to a conversation. */
const TELLS = new Set(["ask", "move", "begin"]);

/** The session of the approval that an operation is about. */
const toldIn = (given: unknown, { executorCalls }: TableSet): string =>
  typeof given === "string"
    ? (executorCalls.get(given)?.sessionId ?? "")
    : (given as NewApproval).call.sessionId;

interface Former {
  readonly seq: number;
  readonly statuses: ReadonlyMap<string, ItemStatus>;
}

const formerOf = ({ conversation, items }: ConversationRow): Former => ({
  seq: conversation.seq,
  statuses: new Map([...items.values()].map(({ id, status }) => [id, status])),
});

/** The faults between a former state of a conversation and the present one. */
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

/** Whether the sandbox is its session's current one and has not ended. */
const isCurrent = ({ sessions, sandboxes }: TableSet, sessionId: string, sandboxId: string): boolean => {
  const status = sandboxes.get(sandboxId)?.record.status;
  return (
    sessions.get(sessionId)?.record.sandboxId === sandboxId && status !== undefined && isLiveSandbox(status)
  );
};

/** Looks at a conversation after every write to it. */
export class ConversationWatch {
  readonly #former = new Map<string, Former>();

  look({ port, operation, about: first, given }: Call, tables: TableSet): readonly string[] {
    const isSave = port === "store.Conversations.memory" && operation === "save";
    const isTold = port === "store.Approvals" && TELLS.has(operation);
    if (!isSave && !isTold && (port !== "store.Conversations" || !WRITES.has(operation))) return [];
    const saved = isSave ? (given[0] as { readonly id: string }).id : first;
    const about = isTold ? toldIn(given[0], tables) : saved;
    const row = tables.conversations.get(about);
    if (row === undefined) return [];
    const former = this.#former.get(about);
    const faults = moveFaults(about, former, row);
    this.#former.set(about, formerOf(row));
    if (operation !== "note" || former?.seq === row.conversation.seq) return faults;
    const { sandboxId } = given[1] as NotedReport;
    return isCurrent(tables, about, sandboxId)
      ? faults
      : faults.concat(`N2 the sandbox ${sandboxId} wrote to conversation ${about} after its end`);
  }
}

/** N4: the items of each sandbox stand in the order in which its agent made them. */
const orderFaults = (items: readonly Item[], talks: Talks): readonly string[] => {
  const shown = new Map<string, string[]>();
  for (const { sandboxId, nativeId } of items.toSorted((one, other) => one.place - other.place))
    // A note of the service says what came back. It stands before all.
    if (sandboxId !== null && nativeId !== null && nativeId !== `restored-${sandboxId}`)
      shown.set(sandboxId, [...(shown.get(sandboxId) ?? []), nativeId]);
  return [...shown].flatMap(([sandboxId, ids]) => {
    const there = new Set(ids);
    const made = talks.madeBy(sandboxId).filter((id) => there.has(id));
    return isDeepStrictEqual(ids, made)
      ? []
      : [`N4 sandbox ${sandboxId} made ${made.join(", ")}, and they stand as ${ids.join(", ")}`];
  });
};

/** At rest, the items of live sandboxes are kept, those of ended sandboxes are closed, and all are in order. */
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
    return lacking.concat(left, orderFaults([...items.values()], talks));
  });
