/** Counters in memory: see postgres/triggers/counters.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isLive } from "../../../src/domain/session/session.ts";
import { Counters } from "../../../src/store/ports/triggers/counters.ts";
import { Tables, type TableSet } from "./tables.ts";

const difference = ({ accounts, sessions, queue }: TableSet, accountId: string) => {
  const account = accounts.get(accountId);
  if (account === undefined) return null;
  const live = [...sessions.values()].filter(
    ({ record }) => record.accountId === accountId && isLive(record.status),
  );
  const waiting = queue.filter((row) => row.accountId === accountId);
  const activeSessions = { said: account.activeSessions, counted: live.length };
  const queuedFires = { said: account.queuedFires, counted: waiting.length };
  const isRight = [activeSessions, queuedFires].every(({ said, counted }) => said === counted);
  return isRight ? null : { activeSessions, queuedFires };
};

const mend = (tables: TableSet, accountId: string) => {
  const mended = difference(tables, accountId);
  if (mended === null) return null;
  const { activeSessions, queuedFires } = mended;
  tables.moveCounters(accountId, {
    sessions: activeSessions.counted - activeSessions.said,
    queued: queuedFires.counted - queuedFires.said,
  });
  return mended;
};

export const layer = Layer.effect(
  Counters,
  Effect.map(Tables, (tables) => ({
    wrong: Effect.sync(() => [...tables.accounts.keys()].filter((id) => difference(tables, id) !== null)),
    mend: (accountId) => Effect.sync(() => mend(tables, accountId)),
  })),
);
