/** The record of calls in memory: see postgres/executor-calls.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  ABANDONED,
  ExecutorCalls,
  type CallLimits,
  type ExecutorCall,
  type NewCall,
} from "../ports/executor-calls.ts";
import { pageFrom, Tables, type TableSet } from "./tables.ts";

const OPEN = { endedAt: null, outcome: null, message: null, upstreamStatus: null, resultBytes: null };

const isConnectorBusy = (tables: TableSet, call: NewCall, { perConnector, windowMs }: CallLimits): boolean =>
  [...tables.executorCalls.values()].filter(
    (row) =>
      row.projectId === call.projectId && row.connector === call.connector && row.at > call.at - windowMs,
  ).length >= perConnector;

const isSessionBusy = (tables: TableSet, call: NewCall, { atOnce, openMs }: CallLimits): boolean =>
  [...tables.executorCalls.values()].filter(
    (row) => row.sessionId === call.sessionId && row.outcome === null && row.at > call.at - openMs,
  ).length >= atOnce;

const keep = (tables: TableSet, row: ExecutorCall): void => {
  tables.executorCalls.set(row.id, row);
};

export const layer = Layer.effect(
  ExecutorCalls,
  Effect.map(Tables, (tables) => ({
    begin: (call, limits) =>
      Effect.sync(() => {
        if (isConnectorBusy(tables, call, limits)) return "connector_busy";
        if (isSessionBusy(tables, call, limits)) return "session_busy";
        keep(tables, { ...call, ...OPEN });
        return "begun";
      }),
    deny: (call, { message, limits }) =>
      Effect.sync(() => {
        if (isConnectorBusy(tables, call, limits)) return false;
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
          ({ outcome, at }) => outcome === null && at < before,
        );
        for (const row of open)
          keep(tables, { ...row, outcome: "unknown", message: ABANDONED, endedAt: now });
        return open.length;
      }),
    prune: (before) =>
      Effect.sync(() => {
        const gone = [...tables.executorCalls.values()].filter(({ at }) => at < before);
        for (const { id } of gone) tables.executorCalls.delete(id);
        return gone.length;
      }),
  })),
);
