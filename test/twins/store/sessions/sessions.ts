/** Sessions in memory: see postgres/sessions/sessions.ts. */
import { isDeepStrictEqual } from "node:util";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isSafe } from "../../../../src/domain/save/saved.ts";
import type { TurnRequest } from "../../../../src/domain/conversation/row-texts.ts";
import { isArchived } from "../../../../src/domain/session/session-news.ts";
import { asksAsleep, sessionActivity } from "../../../../src/domain/session/session-activity.ts";
import { includesRole, type ProjectRole } from "../../../../src/domain/person/role.ts";
import { isLive } from "../../../../src/domain/session/session.ts";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "../../../../src/machines/session.ts";
import type { ConversationRowState } from "../../../../src/store/ports/sessions/conversations.ts";
import type { ExecutorCall } from "../../../../src/store/ports/connectors/executor-calls.ts";
import { writeCursor, cutPage } from "../../../../src/store/cursor.ts";
import {
  sessionDeletedEvent,
  sessionSavedEvent,
  sessionStatusEvent,
  sessionTurnEvent,
  sessionUpdatedEvent,
  workUnsavedEvent,
} from "../../../../src/store/event-rows.ts";
import { CapReached, type Change } from "../../../../src/store/ports/journal.ts";
import {
  PROMPT_AS_NAME_MAX,
  Sessions,
  LIST_SCAN_MAX,
  type OwnerlessSession,
  type Session,
  type SessionFilter,
  type SessionRequest,
  type ShownSession,
} from "../../../../src/store/ports/sessions/sessions.ts";
import {
  dismissedRow,
  restartDeadline,
  sessionColumns,
  slotMove,
  unsavedNews,
} from "../../../../src/store/session-columns.ts";
import { filterReach } from "../../../../src/store/session-filters.ts";
import { searchHits } from "./conversations.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type SessionRow, type TableSet } from "../tables.ts";
import { tellAtEnd } from "./turn-endings.ts";

type SessionChange = Change<SessionSnapshot, SessionEvent, SessionCommand>;

/** The record after a step. It sets the same columns as the Postgres adapter. */
const stepped = (row: SessionRow, change: SessionChange): Session => ({
  ...row.record,
  ...sessionColumns(change),
  sandboxId: change.after.context.sandboxId,
  ending: change.after.context.ending,
  asked: change.after.context.asked ?? null,
  restarts: change.after.context.next != null,
  updatedAt: change.now,
  ...(slotMove(change) === "reserve" && {
    bootDeadlineAt: restartDeadline({ ...row.record, provisionedAt: row.provisionedAt }, change.now),
  }),
});

const moveSlot = (tables: TableSet, accountId: string, change: SessionChange) =>
  Effect.suspend(() => {
    const move = slotMove(change);
    const account = tables.accounts.get(accountId);
    if (move === "keep" || account === undefined) return Effect.void;
    if (move === "reserve" && account.activeSessions >= account.cap) {
      return Effect.fail(new CapReached({ limit: account.cap, activeSessions: account.activeSessions }));
    }
    tables.moveSlots(accountId, move === "reserve" ? 1 : -1);
    return Effect.void;
  });

const memoryOf = (tables: TableSet) =>
  makeActorMemory<SessionSnapshot, SessionEvent, SessionCommand, SessionRow>(tables, {
    kind: "session",
    rows: tables.sessions,
    outbox: tables.sessionOutbox,
    step: (row, change) =>
      Effect.as(moveSlot(tables, row.record.accountId, change), {
        ...row,
        record: stepped(row, change),
        provisionedAt: slotMove(change) === "reserve" ? change.now : row.provisionedAt,
      }),
    finish: ({ record: { accountId, projectId, status, deletedAt } }, change) => {
      const { id, before, after, now } = change;
      if (deletedAt !== null) {
        tables.logs.delete(id);
        tables.conversations.delete(id);
        tables.conversationOutbox.forget(id);
      }
      if (deletedAt !== null || !isLive(status)) tables.sayEnded(id);
      const row = dismissedRow(change, { id, accountId, projectId });
      if (row !== null) tables.auditEvents.set(row.id, row);
      const place = { projectId, sessionId: id, at: now };
      const news = unsavedNews(change);
      const moved = { ...sessionColumns(change), previous: before.state };
      tables.events.append([
        ...(before.state === after.state ? [] : [sessionStatusEvent(place, moved)]),
        ...(news === null ? [] : [workUnsavedEvent(place, news)]),
        ...(deletedAt === null ? [] : [sessionDeletedEvent(place)]),
      ]);
    },
  });

/** Changes an existing record. */
const edit = (tables: TableSet, id: string, change: (record: Session) => Session): Session | null => {
  const row = tables.sessions.get(id);
  if (row === undefined) return null;
  const record = change(row.record);
  tables.sessions.set(id, { ...row, record });
  return record;
};

/** Changes what lists show of a session that is not deleted, with the event `session.updated`. */
const updateShown = (
  tables: TableSet,
  id: string,
  { change, now }: { readonly change: (record: Session) => Session; readonly now: number },
): Session | null => {
  const record = tables.sessions.get(id)?.record;
  if (record === undefined || record.deletedAt !== null) return null;
  tables.events.append([sessionUpdatedEvent({ projectId: record.projectId, sessionId: id, at: now })]);
  return edit(tables, id, change);
};

const searched = ({ name, triggerSlug, initialPrompt }: Session): string =>
  name ?? triggerSlug ?? [...(initialPrompt ?? "")].slice(0, PROMPT_AS_NAME_MAX).join("");

/** The calls of a session's agent that wait for a person. */
const pendingCalls = (tables: TableSet, sessionId: string) =>
  [...tables.approvals.values()].flatMap(({ id, status }) => {
    const call = tables.executorCalls.get(id);
    return status === "pending" && call?.sessionId === sessionId ? [call] : [];
  });

const pendingOf = (tables: TableSet, sessionId: string): number => pendingCalls(tables, sessionId).length;

type ListFilter = SessionFilter & { readonly approves: (projectId: string) => boolean };

/** Whether a call of the session waits for an approval that the reader may give. */
const isApprovable = (tables: TableSet, { id, projectId }: Session, filter: ListFilter): boolean =>
  filter.mayApprove === true && filter.approves(projectId) && pendingOf(tables, id) > 0;

/** The newest message that has the words. */
const hitOf = (tables: TableSet, sessionId: string, search: string): ShownSession["hit"] =>
  searchHits(tables.conversations.get(sessionId), search)[0] ?? null;

/** Whether the filter wants the session. */
const fits = (tables: TableSet, record: Session, filter: ListFilter): boolean => {
  const { status, turn, activities, archived, triggerSlug, startedBy, createdBy, parentSessionId, search } =
    filter;
  const state = tables.conversations.get(record.id)?.conversation.turn.state ?? "idle";
  return (
    (status === null || record.status === status) &&
    (turn === undefined ||
      (state === turn && isLive(record.status)) ||
      (turn === "requires_action" && (record.unsaved !== null || isApprovable(tables, record, filter)))) &&
    (activities === undefined || activities.includes(sessionActivity(shownIn(tables, record)))) &&
    (archived === undefined || archived === isArchived(shownIn(tables, record))) &&
    (triggerSlug === undefined || record.triggerSlug === triggerSlug) &&
    (startedBy === undefined || (record.triggerSlug === null) === (startedBy === "person")) &&
    (createdBy === undefined || record.createdBy === createdBy) &&
    (parentSessionId === undefined || record.parentSessionId === parentSessionId) &&
    (search === undefined ||
      searched(record).toLowerCase().includes(search.toLowerCase()) ||
      hitOf(tables, record.id, search) !== null)
  );
};

/** How many live sessions the agent of a session started. */
export const liveChildrenOf = (tables: TableSet, id: string): number =>
  [...tables.sessions.values()].filter(({ record }) => record.parentSessionId === id && isLive(record.status))
    .length;

/** What the agent of a session asks a person now. */
const askedNow = (tables: TableSet, id: string): TurnRequest | null => {
  const conversation = tables.conversations.get(id)?.conversation;
  return conversation?.turn.state === "requires_action" ? conversation.turnRequest : null;
};

/** Whether enough of its account's sessions are unsaved for a shorter time. */
const isSurplus = (tables: TableSet, { id, accountId, unsaved }: Session): boolean => {
  if (unsaved === null) return false;
  const later = [...tables.sessions.values()].filter(
    ({ record: other }) =>
      other.accountId === accountId &&
      other.status === "running" &&
      other.unsaved !== null &&
      (other.unsaved.since > unsaved.since || (other.unsaved.since === unsaved.since && other.id > id)),
  );
  return later.length >= Math.floor((tables.accounts.get(accountId)?.cap ?? 0) / 2);
};

const positionIn = ({ createdAt, id }: Session) => ({ at: createdAt, id });

const rowState = ({ turn, usage, held, turnRequest, lastSentence }: ConversationRowState) => ({
  turn,
  usage,
  held,
  turnRequest,
  lastSentence,
});

/** The newest one of the session's branch. */
const newestRequest = (
  tables: TableSet,
  { id: branch, projectId }: Session,
): ShownSession["changeRequest"] => {
  const [newest] = [...tables.changeRequests.values()]
    .map(({ record }) => record)
    .filter((record) => record.projectId === projectId && record.headRef === branch)
    .toSorted((one, other) => other.number - one.number);
  if (newest === undefined) return null;
  const { id, number, title, status, mergeSides, tips } = newest;
  const said = status === "open" ? saidOf(tables, newest) : { changesAskedBy: null, comments: 0 };
  return { id, number, title, status, head: mergeSides?.head ?? tips.head, ...said };
};

/** What others say of an open request. */
const saidOf = (
  tables: TableSet,
  { id, createdBy: opener }: { readonly id: string; readonly createdBy: string | null },
): Pick<NonNullable<ShownSession["changeRequest"]>, "changesAskedBy" | "comments"> => {
  const remarks = [...tables.remarks.values()]
    .filter(({ requestId }) => requestId === id)
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  const newest = new Map(
    remarks.filter(({ kind }) => kind !== "comment").map((verdict) => [verdict.createdBy, verdict]),
  );
  const asking = remarks.findLast(
    (one) => one.kind === "changes_requested" && newest.get(one.createdBy) === one,
  );
  return {
    changesAskedBy: asking?.createdByName ?? null,
    comments: remarks.filter(
      ({ kind, replyTo, resolved, createdBy }) =>
        kind === "comment" && replyTo === null && resolved === null && createdBy !== opener,
    ).length,
  };
};

const oldestCall = (calls: readonly ExecutorCall[]): ShownSession["oldestApproval"] => {
  const [oldest] = calls.toSorted((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1));
  return oldest === undefined
    ? null
    : { id: oldest.id, connector: oldest.connector, tool: oldest.tool, at: oldest.at };
};

/** A session with the state of its conversation. */
export const shownIn = (tables: TableSet, record: Session): ShownSession => {
  const found = tables.conversations.get(record.id)?.conversation;
  const calls = pendingCalls(tables, record.id);
  return {
    ...record,
    conversation: found === undefined ? null : rowState(found),
    pendingApprovals: calls.length,
    oldestApproval: oldestCall(calls),
    changeRequest: newestRequest(tables, record),
    creatorName: tables.users.get(record.createdBy)?.name ?? "",
  };
};

/** The sessions of a list, and whether its reader may approve calls of a project's sessions. */
interface Scope {
  readonly isInScope: (record: Session) => boolean;
  readonly approves: (projectId: string) => boolean;
}

const seenBy = (tables: TableSet, id: string, reader: string | undefined): number | null =>
  reader === undefined
    ? null
    : Math.max(tables.reads.get(`${id} ${reader}`) ?? 0, tables.users.get(reader)?.createdAt ?? 0);

const list = Effect.fnUntraced(function* (
  tables: TableSet,
  { isInScope, approves }: Scope,
  request: SessionRequest,
) {
  const { limit, cursor, reader, lookedAt = LIST_SCAN_MAX } = request;
  const reach = filterReach(request);
  const all = [...tables.sessions.values()]
    .map(({ record }) => record)
    .filter(
      (record) =>
        isInScope(record) &&
        record.deletedAt === null &&
        (reach === "all" ||
          isLive(record.status) ||
          (reach === "open" && (pendingOf(tables, record.id) > 0 || asksAsleep(record) || record.restarts))),
    );
  const looked = yield* pageFrom(all, { cursor, limit: lookedAt }, positionIn);
  const found = looked.items.filter((record) => fits(tables, record, { ...request, approves }));
  const page = cutPage(
    found.map((record) =>
      Object.assign(shownIn(tables, record), {
        seenAt: seenBy(tables, record.id, reader),
        hit: request.search === undefined ? null : hitOf(tables, record.id, request.search),
      }),
    ),
    limit,
    positionIn,
  );
  const isWhole = looked.items.length < lookedAt;
  const last = looked.items.at(-1);
  if (page.nextCursor !== null || isWhole || last === undefined || isUnfiltered(request)) return page;
  return { items: page.items, nextCursor: writeCursor(positionIn(last)) };
});

const isUnfiltered = (filter: SessionFilter): boolean => {
  const { status, turn, activities, archived, triggerSlug, startedBy, createdBy, search } = filter;
  return (
    status === null &&
    [turn, activities, archived, triggerSlug, startedBy, createdBy, search].every(
      (wanted) => wanted === undefined,
    )
  );
};

export const layer = Layer.effect(
  Sessions,
  Effect.map(Tables, (tables) => ({
    ...memoryOf(tables),
    get: (id) => Effect.sync(() => tables.sessions.get(id)?.record ?? null),
    shown: (id) =>
      Effect.sync(() => {
        const record = tables.sessions.get(id)?.record;
        return record === undefined ? null : shownIn(tables, record);
      }),
    list: (projectId, request) =>
      list(tables, { isInScope: (record) => record.projectId === projectId, approves: () => true }, request),
    listForReader: ({ accountId, userId }, request) => {
      const hasRole = (projectId: string, role: ProjectRole) =>
        userId === null || includesRole(tables.roleOf(userId, projectId), role);
      return list(
        tables,
        {
          isInScope: (record) => record.accountId === accountId && hasRole(record.projectId, "viewer"),
          approves: (projectId) => hasRole(projectId, "member"),
        },
        request,
      );
    },
    liveChildren: (id) => Effect.sync(() => liveChildrenOf(tables, id)),
    anyIn: (projectId) =>
      Effect.sync(() => [...tables.sessions.values()].some(({ record }) => record.projectId === projectId)),
    see: (id, { userId, at }) =>
      Effect.sync(() => {
        const key = `${id} ${userId}`;
        tables.reads.set(key, Math.max(tables.reads.get(key) ?? 0, at));
      }),
    rename: (id, { name, metadata, archivedAt, now }) =>
      Effect.sync(() => {
        const change = (record: Session): Session => ({
          ...record,
          name: name ?? record.name,
          metadata: metadata ?? record.metadata,
          archivedAt: archivedAt === undefined ? (record.archivedAt ?? null) : archivedAt,
          updatedAt: now,
        });
        return updateShown(tables, id, { change, now });
      }),
    entitle: (id, { title, former, now }) =>
      Effect.sync(() => {
        const name = tables.sessions.get(id)?.record.name;
        if (name !== null && name !== former) return;
        updateShown(tables, id, { change: (record) => ({ ...record, name: title }), now });
      }),
    acceptBootstrap: (id, now) =>
      Effect.sync(() => {
        edit(tables, id, (record) => ({
          ...record,
          bootstrapAcceptedAt: record.bootstrapAcceptedAt ?? now,
        }));
      }),
    noteSaved: (id, { sandboxId, saved }) =>
      Effect.map(Clock.currentTimeMillis, (at) => {
        const former = tables.sessions.get(id)?.record;
        if (former?.sandboxId !== sandboxId || isDeepStrictEqual(former.saved, saved)) return;
        edit(tables, id, (record) => ({
          ...record,
          saved,
          unsaved: isSafe(saved) ? null : record.unsaved,
        }));
        tables.events.append([sessionSavedEvent({ projectId: former.projectId, sessionId: id, at }, saved)]);
      }),
    noteChanges: (id, changes, now) =>
      Effect.sync(() => {
        updateShown(tables, id, { change: (record) => ({ ...record, changes }), now });
      }),
    nodesWithSaves: (projectId) =>
      Effect.sync(() => {
        const ofProject = [...tables.sessions.values()]
          .map(({ record }) => record)
          .filter((record) => record.projectId === projectId && record.deletedAt === null);
        const nodes = ofProject.flatMap(({ saved }) =>
          [saved, saved?.earlier].flat().map((save) => save?.node),
        );
        return [...new Set(nodes.flatMap((node) => node ?? []))].toSorted();
      }),
    forgetEarlier: (id, saveId) =>
      Effect.sync(() => {
        edit(tables, id, (record) =>
          record.saved?.earlier === undefined
            ? record
            : {
                ...record,
                saved: {
                  ...record.saved,
                  earlier: record.saved.earlier.filter((save) => save.id !== saveId),
                },
              },
        );
      }),
    noteRestored: (id, { sandboxId, restored }) =>
      Effect.sync(() => {
        edit(tables, id, (record) => (record.sandboxId === sandboxId ? { ...record, restored } : record));
      }),
    noteTurn: (id, { now, ...turn }) =>
      Effect.sync(() => {
        const { sandboxId, lastTurn = null, projectId = "" } = tables.sessions.get(id)?.record ?? {};
        if (sandboxId !== turn.sandboxId) return null;
        if (lastTurn?.sandboxId === turn.sandboxId && lastTurn.number >= turn.number) return null;
        edit(tables, id, (record) => ({ ...record, lastTurn: turn }));
        tables.events.append([sessionTurnEvent({ projectId, sessionId: id, at: now }, turn)]);
        tellAtEnd(tables, id, { turn, now });
        return { projectId };
      }),
    runningOn: (nodeId) =>
      Effect.sync(() =>
        [...tables.sessions.values()].flatMap(({ record }) => {
          const { id, accountId, status, sandboxId, runningAt, unsaved } = record;
          const isSaved = record.saved?.state === "complete";
          return status === "running" &&
            sandboxId !== null &&
            runningAt !== null &&
            tables.sandboxes.get(sandboxId)?.record.nodeId === nodeId
            ? [
                {
                  id,
                  accountId,
                  sandboxId,
                  runningAt,
                  unsaved,
                  isSaved,
                  asks: askedNow(tables, id),
                  isSurplus: isSurplus(tables, record),
                },
              ]
            : [];
        }),
      ),
    roomWanted: Effect.sync(() => roomWanted(tables)),
    ownerless: Effect.sync(() => [...workless(tables), ...unheldSandboxes(tables)]),
  })),
);

const roomWanted = (tables: TableSet): ReadonlyMap<string, number> => {
  const rows = [...tables.sessions.values()];
  const wanted = [...tables.accounts].map(([id, { cap, activeSessions }]) => {
    const waiting = tables.queue.filter(
      ({ accountId, kind }) => accountId === id && kind === "session",
    ).length;
    const ending = rows.filter(
      ({ record: { accountId, status, ending: reason }, snapshot }) =>
        accountId === id && status === "running" && reason !== null && snapshot.context.next === null,
    ).length;
    return [id, waiting === 0 ? 0 : waiting - Math.max(cap - activeSessions, 0) - ending] as const;
  });
  return new Map(wanted.filter(([, count]) => count > 0));
};

/** Live sessions without any work left. */
const workless = (tables: TableSet): readonly OwnerlessSession[] =>
  [...tables.sessions.values()].flatMap(({ record: { id, status, sandboxId } }) => {
    const isWorkLeft =
      tables.sessionOutbox.of(id).length > 0 || tables.sandboxOutbox.of(sandboxId ?? "").length > 0;
    const sandbox = tables.sandboxes.get(sandboxId ?? "")?.record.status ?? null;
    return isLive(status) && !isWorkLeft ? [{ id, sandboxId, sandbox, isHeld: true }] : [];
  });

/** Live sandboxes that their session, without any work left, does not hold. */
const unheldSandboxes = (tables: TableSet): readonly OwnerlessSession[] =>
  [...tables.sandboxes.values()].flatMap(({ record, snapshot }) => {
    const { id: sandboxId, sessionId: id, status: sandbox } = record;
    const session = tables.sessions.get(id)?.record;
    const isHeld = session !== undefined && isLive(session.status) && session.sandboxId === sandboxId;
    const isWorkLeft = tables.sessionOutbox.of(id).length > 0;
    const isEnding = snapshot.context.ending !== null;
    const isOver = isEnding || (sandbox !== "provisioning" && sandbox !== "active");
    return session === undefined || isHeld || isWorkLeft || isOver
      ? []
      : [{ id, sandboxId, sandbox, isHeld: false }];
  });
