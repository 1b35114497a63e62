/** The record of calls in memory: see postgres/connectors/executor-calls.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  ABANDONED,
  ExecutorCalls,
  type CallLimits,
  type ExecutorCall,
  type NewCall,
} from "../../../../src/store/ports/connectors/executor-calls.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

/** The columns of a call that has not begun. */
export const OPEN = {
  begunAt: null,
  approver: null,
  endedAt: null,
  outcome: null,
  message: null,
  upstreamStatus: null,
  resultBytes: null,
};

type Place = Pick<NewCall, "projectId" | "sessionId" | "connector">;

const beganAt = ({ begunAt, at }: ExecutorCall): number => begunAt ?? at;

/** Whether the connector has all rows that it may have. A call that waits for a person counts once it is sent or settled. */
export const isConnectorBusy = (
  tables: TableSet,
  { projectId, connector, now }: Place & { readonly now: number },
  { perConnector, windowMs }: CallLimits,
): boolean =>
  [...tables.executorCalls.values()].filter(
    (row) =>
      row.projectId === projectId &&
      row.connector === connector &&
      row.outcome !== "pending" &&
      beganAt(row) > now - windowMs,
  ).length >= perConnector;

/** Whether the session has all calls under way that it may have. */
export const isSessionBusy = (
  tables: TableSet,
  { sessionId, now }: Place & { readonly now: number },
  { atOnce, openMs }: CallLimits,
): boolean =>
  [...tables.executorCalls.values()].filter(
    (row) => row.sessionId === sessionId && row.outcome === null && beganAt(row) > now - openMs,
  ).length >= atOnce;

const keep = (tables: TableSet, row: ExecutorCall): void => {
  tables.executorCalls.set(row.id, row);
};

export const layer = Layer.effect(
  ExecutorCalls,
  Effect.map(Tables, (tables) => ({
    begin: (call, limits) =>
      Effect.sync(() => {
        const place = { ...call, now: call.at };
        if (isConnectorBusy(tables, place, limits)) return "connector_busy";
        if (isSessionBusy(tables, place, limits)) return "session_busy";
        keep(tables, { ...call, ...OPEN });
        return "begun";
      }),
    deny: (call, { message, limits }) =>
      Effect.sync(() => {
        if (isConnectorBusy(tables, { ...call, now: call.at }, limits)) return false;
        keep(tables, { ...call, ...OPEN, endedAt: call.at, outcome: "denied", message });
        return true;
      }),
    end: (id, { now, ...end }) =>
      Effect.sync(() => {
        const row = tables.executorCalls.get(id);
        if (row === undefined || row.outcome !== null) return false;
        keep(tables, { ...row, ...end, endedAt: now });
        return true;
      }),
    list: (projectId, { sessionId, connector, ...request }) =>
      Effect.suspend(() => {
        const rows = [...tables.executorCalls.values()].filter(
          (row) =>
            row.projectId === projectId &&
            (sessionId === undefined || row.sessionId === sessionId) &&
            (connector === undefined || row.connector === connector),
        );
        return pageFrom(rows, request, ({ at, id }) => ({ at, id }));
      }),
    abandon: (before, now) =>
      Effect.sync(() => {
        const open = [...tables.executorCalls.values()].filter(
          (row) => row.outcome === null && beganAt(row) < before,
        );
        for (const row of open)
          keep(tables, { ...row, outcome: "unknown", message: ABANDONED, endedAt: now });
        return open.length;
      }),
    prune: (before) =>
      Effect.sync(() => {
        const gone = [...tables.executorCalls.values()].filter(
          ({ at, outcome }) => at < before && outcome !== "pending",
        );
        for (const { id } of gone) {
          tables.executorCalls.delete(id);
          tables.approvals.delete(id);
        }
        return gone.length;
      }),
  })),
);
