/** Limits of spend and what was spent, in memory: see features/spend/sql. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isLive } from "../../../../src/domain/session/session.ts";
import { utcDay } from "../../../../src/domain/conversation/usage.ts";
import {
  type CountedCall,
  isNear,
  type LimitState,
  utcMonth,
  type SpendCount,
  spendCounts,
  spentBy,
  type SpendSums,
  sumIn,
} from "../../../../src/domain/sandbox/spend.ts";
import {
  LAPSES_MAX,
  LIMITS_MAX,
  RESERVED_MS,
  type RunningSpender,
  type ShownLimit,
  Spend,
  type SpendLimit,
  type SpentFor,
} from "../../../../src/features/spend/ports/spend.ts";
import {
  accountDay,
  addSums,
  countKey,
  limitedCounts,
  limitStates,
  nearNote,
  NO_SPEND,
  refusingLimit,
} from "../../../../src/features/spend/rules/limits.ts";
import type { Session } from "../../../../src/store/ports/sessions/sessions.ts";
import { noteIn } from "../sessions/conversations.ts";
import { addModelUsage, sessionIn } from "./model-providers.ts";
import { Tables, type TableSet } from "../tables.ts";

export interface SpendLimitRow extends SpendLimit {
  readonly accountId: string;
}
export interface SpendRow extends SpendCount, SpendSums {
  readonly accountId: string;
  readonly notedAmount: number | null;
}
export interface ReservationRow extends SpendSums {
  readonly accountId: string;
  readonly sessionId: string;
  readonly model: string;
  readonly isOwn: boolean;
  readonly counts: readonly string[];
  readonly expiresAt: number;
}

type Place = Pick<SpendCount, "subject"> & { readonly scope: SpendLimit["scope"] };

const keyOf = (accountId: string, { scope, subject, period }: SpendCount): string =>
  `${accountId} ${countKey({ scope, subject, period })}`;

const chainOf = (tables: TableSet, sessionId: string | null): readonly Session[] => {
  const session = tables.sessions.get(sessionId ?? "")?.record;
  return session === undefined ? [] : [session, ...chainOf(tables, session.parentSessionId)];
};

const limitsOf = (tables: TableSet, accountId: string): readonly SpendLimitRow[] =>
  [...tables.spendLimits.values()].filter((limit) => limit.accountId === accountId);

const nameOf = (tables: TableSet, { scope, subject }: Place): string => {
  if (scope === "project") return tables.projects.get(subject)?.record.name ?? "";
  if (scope === "person") return tables.users.get(subject)?.name ?? "";
  if (scope === "session") return tables.sessions.get(subject)?.record.name ?? "";
  return scope === "trigger" ? (subject.split("/")[1] ?? "") : "";
};

const statesOf = (
  tables: TableSet,
  accountId: string,
  counts: readonly SpendCount[],
): readonly LimitState[] => {
  const limited = limitedCounts(counts, limitsOf(tables, accountId));
  const reservations = [...tables.spendReservations.values()].filter((row) => row.accountId === accountId);
  const sums = limited.map(({ count }) => {
    const reserved = reservations
      .filter((row) => row.counts.includes(countKey(count)))
      .reduce<SpendSums>(addSums, NO_SPEND);
    const spent = tables.spend.get(keyOf(accountId, count)) ?? NO_SPEND;
    return [countKey(count), { spent, reserved, name: nameOf(tables, count) }] as const;
  });
  return limitStates(limited, new Map(sums));
};

interface Counting extends Pick<ReservationRow, "sessionId" | "isOwn"> {
  readonly counted: CountedCall;
  readonly now: number;
}

const countCall = (tables: TableSet, { sessionId, isOwn, counted, now }: Counting): void => {
  const chain = chainOf(tables, sessionId);
  const [session] = chain;
  if (session === undefined) return;
  const { accountId } = session;
  addModelUsage(tables, session, { ...counted, now });
  const counts = spendCounts(chain, { now, isOwn });
  for (const count of isOwn ? counts : [...counts, accountDay(utcDay(now))]) {
    const before = tables.spend.get(keyOf(accountId, count));
    const sum = addSums(before ?? NO_SPEND, spentBy(counted));
    tables.spend.set(keyOf(accountId, count), {
      ...count,
      ...sum,
      accountId,
      notedAmount: before?.notedAmount ?? null,
    });
  }
  for (const { count, limit } of limitedCounts(counts, limitsOf(tables, accountId))) {
    const row = tables.spend.get(keyOf(accountId, count));
    if (row === undefined || !isNear(sumIn(limit, row), limit.amount) || row.notedAmount === limit.amount)
      continue;
    tables.spend.set(keyOf(accountId, count), { ...row, notedAmount: limit.amount });
    const { unit, amount } = limit;
    const state = { scope: count.scope, unit, amount, name: nameOf(tables, count), reserved: 0 };
    const note = nearNote({ sessionId, count, limit: { ...state, spent: sumIn(limit, row) }, now });
    noteIn(tables, sessionId, (draft) => draft.putNote(note));
  }
};

const settle = (
  tables: TableSet,
  { id, counted, now }: Parameters<(typeof Spend)["Service"]["settle"]>[0],
): void => {
  const row = tables.spendReservations.get(id);
  tables.spendReservations.delete(id);
  if (row !== undefined && counted !== null) countCall(tables, { ...row, counted, now });
};

const lapse = (tables: TableSet, now: number): number => {
  const rows = [...tables.spendReservations].filter(([, { expiresAt }]) => expiresAt <= now);
  const lapsed = rows.toSorted(([, one], [, other]) => one.expiresAt - other.expiresAt).slice(0, LAPSES_MAX);
  for (const [id, { sessionId, isOwn, model, tokens, cost }] of lapsed) {
    tables.spendReservations.delete(id);
    const counted = { model, tokens: null, estimated: tokens, cost };
    countCall(tables, { sessionId, isOwn, counted, now });
  }
  return lapsed.length;
};

const ORDER: readonly SpendLimit["scope"][] = [
  "account",
  "project",
  "person",
  "each_session",
  "trigger",
  "session",
];

const shownLimit = (tables: TableSet, { accountId, ...limit }: SpendLimitRow, now: number): ShownLimit => {
  const { scope, subject } = limit;
  const name = nameOf(tables, limit);
  if (scope === "each_session") return { ...limit, name, spent: null };
  const period = scope === "session" ? "" : scope === "trigger" ? utcDay(now) : utcMonth(now);
  const { tokens, cost } = tables.spend.get(keyOf(accountId, { scope, subject, period })) ?? NO_SPEND;
  return { ...limit, name, spent: { tokens, cost } };
};

const shownLimits = (tables: TableSet, accountId: string, now: number): readonly ShownLimit[] =>
  limitsOf(tables, accountId)
    .filter(
      ({ scope, subject }) =>
        scope !== "session" || (tables.sessions.get(subject)?.record.deletedAt ?? null) === null,
    )
    .map((row) => shownLimit(tables, row, now))
    .toSorted(
      (one, other) =>
        ORDER.indexOf(one.scope) - ORDER.indexOf(other.scope) ||
        (one.name === other.name ? (one.id < other.id ? -1 : 1) : one.name < other.name ? -1 : 1),
    );

const spentFor = (
  tables: TableSet,
  { accountId: _account, notedAmount: _noted, ...row }: SpendRow,
): SpentFor => ({ ...row, name: nameOf(tables, row) });

const isAt = (limit: SpendLimitRow, { accountId, scope, subject }: Place & { readonly accountId: string }) =>
  limit.accountId === accountId && limit.scope === scope && limit.subject === subject;

const running = (tables: TableSet, accountId: string): readonly RunningSpender[] =>
  [...tables.sandboxes.values()]
    .filter(({ record }) => record.status === "provisioning" || record.status === "active")
    .flatMap(({ record, secrets }) => {
      const session = tables.sessions.get(record.sessionId)?.record;
      if (session?.accountId !== accountId || !isLive(session.status)) return [];
      const above = chainOf(tables, session.parentSessionId);
      return [{ ...session, above, secretNames: Object.keys(secrets?.versions ?? {}).toSorted() }];
    })
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));

export const layer = Layer.effect(
  Spend,
  Effect.map(Tables, (tables) => ({
    set: ({ now: _now, ...wish }) =>
      Effect.sync(() => {
        const former = [...tables.spendLimits.values()].find((limit) => isAt(limit, wish));
        if (former === undefined && limitsOf(tables, wish.accountId).length >= LIMITS_MAX) return null;
        const row = { ...wish, id: former?.id ?? wish.id };
        tables.spendLimits.set(row.id, row);
        const { accountId: _account, ...limit } = row;
        return limit;
      }),
    remove: (place) =>
      Effect.sync(() => {
        const row = [...tables.spendLimits.values()].find((limit) => isAt(limit, place));
        return row !== undefined && tables.spendLimits.delete(row.id);
      }),
    list: (accountId, now) => Effect.sync(() => shownLimits(tables, accountId, now)),
    hasLimits: (accountId) => Effect.sync(() => limitsOf(tables, accountId).length > 0),
    callerIn: (sandboxId) =>
      Effect.sync(() => {
        const [session, ...above] = chainOf(tables, sessionIn(tables, sandboxId)?.id ?? null);
        if (session === undefined) return null;
        const { accountId } = session;
        const isLimited = limitsOf(tables, accountId).length > 0;
        return { accountId, sessions: [session, ...above], isLimited } as const;
      }),
    hasPerson: (accountId, userId) => Effect.sync(() => tables.users.get(userId)?.accountId === accountId),
    ofSession: ({ accountId, parentSessionId, ...session }, now) =>
      Effect.sync(() => {
        const chain = [session, ...chainOf(tables, parentSessionId)];
        return statesOf(tables, accountId, spendCounts(chain, { now, isOwn: false }));
      }),
    running: (accountId) => Effect.sync(() => running(tables, accountId)),
    spentBySession: (sessionId) =>
      Effect.sync(() => {
        const accountId = tables.sessions.get(sessionId)?.record.accountId ?? "";
        const count = { scope: "session", subject: sessionId, period: "" } as const;
        const { tokens, cost } = tables.spend.get(keyOf(accountId, count)) ?? NO_SPEND;
        return { tokens, cost };
      }),
    month: (accountId, month) =>
      Effect.sync(() =>
        [...tables.spend.values()]
          .filter(
            (row) =>
              row.accountId === accountId &&
              row.period.startsWith(month) &&
              ["account", "person", "project"].includes(row.scope),
          )
          .map((row) => spentFor(tables, row))
          .toSorted(
            (one, other) =>
              other.cost - one.cost ||
              other.tokens - one.tokens ||
              (one.period === other.period
                ? one.subject < other.subject
                  ? -1
                  : 1
                : one.period < other.period
                  ? 1
                  : -1),
          ),
      ),
    reserve: (call) =>
      Effect.sync(() => {
        const { id, caller, model, isOwn, tokens, cost, now } = call;
        const { accountId, sessions, isLimited } = caller;
        const counts = spendCounts(sessions, { now, isOwn });
        const refusal = isLimited ? refusingLimit(statesOf(tables, accountId, counts), cost) : null;
        if (refusal !== null) return refusal;
        tables.spendReservations.set(id, {
          accountId,
          sessionId: sessions[0].id,
          model,
          isOwn,
          counts: counts.map(countKey),
          tokens,
          cost: cost ?? 0,
          expiresAt: now + RESERVED_MS,
        });
        return null;
      }),
    settle: (call) => Effect.sync(() => settle(tables, call)),
    renew: (ids, now) =>
      Effect.sync(() => {
        for (const id of ids) {
          const row = tables.spendReservations.get(id);
          if (row !== undefined) tables.spendReservations.set(id, { ...row, expiresAt: now + RESERVED_MS });
        }
      }),
    lapse: (now) => Effect.sync(() => lapse(tables, now)),
  })),
);
