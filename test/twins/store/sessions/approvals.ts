/** Calls that wait for a person, in memory: see its sql/approvals.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  askedNote,
  decidedNote,
  type ApprovalNote,
} from "../../../../src/features/approvals/ports/approval-notes.ts";
import {
  approvalWaitingEvent,
  movedBy,
  moveEvents,
} from "../../../../src/features/approvals/ports/approval-steps.ts";
import {
  Approvals,
  type Approval,
  type ApprovalLimits,
  type ApprovalMove,
  type ApprovalRow,
  type NewApproval,
} from "../../../../src/features/approvals/ports/approvals.ts";
import { noteIn } from "./conversations.ts";
import { isConnectorBusy, isSessionBusy, OPEN } from "../projects/executor-calls.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

/** Says it in the session's conversation, if it has one. */
const tell = (tables: TableSet, note: ApprovalNote): void =>
  noteIn(tables, note.sessionId, (draft) => draft.putNote(note));

const withCall = (tables: TableSet, row: ApprovalRow | undefined): Approval | null => {
  const call = row === undefined ? undefined : tables.executorCalls.get(row.id);
  return row === undefined || call === undefined ? null : { ...row, call };
};

const all = (tables: TableSet): readonly Approval[] =>
  [...tables.approvals.values()].flatMap((row) => withCall(tables, row) ?? []);

const keep = (tables: TableSet, { call, ...row }: Approval): void => {
  tables.approvals.set(row.id, row);
  tables.executorCalls.set(call.id, call);
};

/** The row that the same call joins (ports/approvals.ts Q3). */
const joined = (tables: TableSet, { call }: NewApproval): Approval | undefined =>
  all(tables).find(
    (held) =>
      held.deliveredAt === null &&
      held.call.sessionId === call.sessionId &&
      held.call.connector === call.connector &&
      held.call.tool === call.tool &&
      held.call.origin === call.origin &&
      held.call.pin === call.pin &&
      held.call.argumentsDigest === call.argumentsDigest,
  );

const ask = (tables: TableSet, asked: NewApproval, limits: ApprovalLimits) => {
  const { call, sealedArguments, expiresAt, attendedUntil } = asked;
  const held = joined(tables, asked);
  if (held !== undefined) return { id: held.id, isNew: false };
  const waiting = all(tables).filter(
    (row) => row.status === "pending" && row.call.sessionId === call.sessionId,
  );
  if (waiting.length >= limits.open) return "session_full" as const;
  if (isConnectorBusy(tables, { ...call, now: call.at }, limits)) return "connector_busy" as const;
  keep(tables, {
    id: call.id,
    projectId: call.projectId,
    status: "pending",
    sealedArguments,
    sealedResult: null,
    message: null,
    askedAt: call.at,
    expiresAt,
    decidedBy: null,
    decidedAt: null,
    movedAt: call.at,
    attendedUntil,
    deliveredAt: null,
    call: { ...call, ...OPEN, outcome: "pending" },
  });
  tell(tables, askedNote(call));
  tables.events.append([approvalWaitingEvent(call)]);
  return { id: call.id, isNew: true };
};

const move = (tables: TableSet, id: string, moved: ApprovalMove): Approval | null => {
  const before = withCall(tables, tables.approvals.get(id));
  const after = before === null ? null : movedBy(before, moved);
  if (before === null || after === null) return null;
  keep(tables, after);
  const note = decidedNote(after, moved, (userId) => tables.users.get(userId)?.name ?? "A person");
  if (note !== null) tell(tables, note);
  tables.events.append(moveEvents(before, after));
  return after;
};

const isDue = (row: ApprovalRow, now: number, lostBefore: number): boolean => {
  if (row.status === "approved") return true;
  if (row.status === "calling") return row.movedAt < lostBefore;
  if (row.status === "pending") return row.expiresAt <= now;
  return row.deliveredAt === null && row.attendedUntil <= now;
};

export const layer = Layer.effect(
  Approvals,
  Effect.map(Tables, (tables) => ({
    ask: (asked, limits) => Effect.sync(() => ask(tables, asked, limits)),
    find: (projectId, id) =>
      Effect.sync(() => {
        const found = withCall(tables, tables.approvals.get(id));
        return found?.projectId === projectId ? found : null;
      }),
    get: (id) => Effect.sync(() => withCall(tables, tables.approvals.get(id))),
    list: (projectId, { sessionId, status, ...request }) =>
      Effect.suspend(() => {
        const rows = all(tables).filter(
          (row) =>
            row.projectId === projectId &&
            (sessionId === undefined || row.call.sessionId === sessionId) &&
            (status === undefined || row.status === status),
        );
        return pageFrom(rows, request, ({ askedAt, id }) => ({ at: askedAt, id }));
      }),
    move: (id, moved) => Effect.sync(() => move(tables, id, moved)),
    begin: (id, { limits, now }) =>
      Effect.sync(() => {
        const held = withCall(tables, tables.approvals.get(id));
        if (held?.status !== "approved") return "moved";
        const place = { ...held.call, now };
        if (isConnectorBusy(tables, place, limits) || isSessionBusy(tables, place, limits)) return "busy";
        return move(tables, id, { type: "call.begun", now }) === null ? "moved" : "begun";
      }),
    attend: (id, until) =>
      Effect.sync(() => {
        const row = tables.approvals.get(id);
        if (row !== undefined) tables.approvals.set(id, { ...row, attendedUntil: until });
      }),
    due: (now, lostBefore, limit) =>
      Effect.sync(() =>
        [...tables.approvals.values()]
          .filter((row) => isDue(row, now, lostBefore))
          .toSorted((a, b) => a.movedAt - b.movedAt)
          .slice(0, limit)
          .map(({ id, status }) => ({ id, status })),
      ),
    pruneResults: (before) =>
      Effect.sync(() => {
        const old = [...tables.approvals.values()].filter(
          ({ sealedResult, deliveredAt }) =>
            sealedResult !== null && deliveredAt !== null && deliveredAt < before,
        );
        for (const row of old) tables.approvals.set(row.id, { ...row, sealedResult: null });
        return old.length;
      }),
  })),
);
