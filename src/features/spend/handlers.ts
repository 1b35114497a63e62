/** Handlers of api.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import {
  type LimitAmount,
  type LimitState,
  utcMonth,
  NANO,
  spendCounts,
  type SpendScope,
  type SpendSums,
  triggerSubject,
} from "../../domain/sandbox/spend.ts";
import { gitFailed, limitNeedsProvider } from "../../http/answers/refusals.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Conflict, notFound } from "../../http/api/errors.ts";
import { Platform } from "../../http/api/platform.ts";
import { withApiErrors, projectFor, requireProject, sessionFor } from "../../http/steps/answers.ts";
import { triggerFor } from "../../http/steps/projects/hand-fires.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { AccountSpend } from "../../services/projects/account-spend.ts";
import { callingSession, countingFault, requireCountable } from "../../services/projects/counted-models.ts";
import { wireForm } from "../../http/steps/wire.ts";
import { LimitWire, SpendGroup, type Wish } from "./api.ts";
import { limitedCounts } from "./rules/limits.ts";
import { LIMITS_MAX, type LimitPlace, type ShownLimit, Spend, type SpentFor } from "./ports/spend.ts";

interface TypedAmount {
  readonly usd?: number;
  readonly tokens?: number;
}

/** A limit's amount as the API has it: dollars, or tokens. */
const shownAmount = ({ unit, amount }: LimitAmount): number => (unit === "usd" ? amount / NANO : amount);

const sumsWire = ({ cost, tokens }: SpendSums) => ({ usd: cost / NANO, tokens });

const limitForm = wireForm(LimitWire);
const showLimit = (limit: ShownLimit) =>
  limitForm({ ...limit, amount: shownAmount(limit), spent: limit.spent && sumsWire(limit.spent) });

const appliedWire = ({ scope, name, unit, amount, spent, reserved }: LimitState) => ({
  scope,
  name,
  unit,
  amount: shownAmount({ unit, amount }),
  spent: shownAmount({ unit, amount: spent }),
  reserved: shownAmount({ unit, amount: reserved }),
});

const amountIn = ({ usd, tokens }: TypedAmount) => {
  if (usd !== undefined && tokens === undefined)
    return Effect.succeed({ unit: "usd", amount: Math.round(usd * NANO) } as const);
  if (tokens !== undefined && usd === undefined)
    return Effect.succeed({ unit: "tokens", amount: tokens } as const);
  return Effect.fail(badRequest("usd", "or tokens must be given, and not both"));
};

type Place = Omit<LimitPlace, "accountId"> & { readonly projectId: string | null };

/** The target of an audit record. */
const auditTarget = ({ scope, subject }: Place): string => (subject === "" ? scope : `${scope} ${subject}`);

/** How many sessions are looked at at a time: for some, git reads files. */
const AT_ONCE = 8;

/** The running sessions whose calls a limit does not count. They go on: people decide about them. @param all the account's limits */
const uncountedBy = Effect.fnUntraced(function* (limit: ShownLimit, all: readonly ShownLimit[]) {
  const { accountId } = yield* Caller;
  const now = yield* Clock.currentTimeMillis;
  const running = yield* (yield* Spend).running(accountId);
  const limitedSpenders = running.filter(({ above, ...session }) =>
    limitedCounts(spendCounts([session, ...above], { now, isOwn: false }), all).some(
      (sum) => sum.limit.id === limit.id,
    ),
  );
  const rows = yield* Effect.forEach(
    limitedSpenders,
    Effect.fnUntraced(function* (session) {
      const calling = yield* callingSession(session);
      const { id, name, projectId, secretNames } = session;
      if (calling === null) return [];
      const fault = yield* countingFault(session, { ...calling, secretNames }).pipe(
        Effect.catchTag("GitError", ({ message }) =>
          Effect.succeed(`Whether its calls of models are counted is not known: ${message}`),
        ),
      );
      return fault === null ? [] : [{ project_id: projectId, id, name, reason: fault }];
    }),
    { concurrency: AT_ONCE },
  );
  return rows.flat();
});

/** Sets a limit, with its row of the audit record. @returns it as lists show it, with the running sessions that it does not count */
const set = Effect.fnUntraced(function* (place: Place, wish: TypedAmount) {
  const { accountId } = yield* Caller;
  const spend = yield* Spend;
  const amount = yield* amountIn(wish);
  const now = yield* Clock.currentTimeMillis;
  const limit = yield* spend.set({ ...place, ...amount, id: yield* newUuid, accountId, now }).pipe(
    withAudit((row) =>
      row === null
        ? null
        : {
            action: "spend_limit.set",
            target: auditTarget(place),
            ...(place.projectId !== null && { projectId: place.projectId }),
            changes: { [row.unit]: shownAmount(row) },
          },
    ),
  );
  if (limit === null)
    return yield* new Conflict({
      error: `An account has at most ${LIMITS_MAX} limits of spend. Remove one first.`,
      code: "too_many_limits",
      details: { limit: LIMITS_MAX },
    });
  (yield* AccountSpend).limitSet(accountId);
  const limits = yield* spend.list(accountId, now);
  const shownLimit = limits.find(({ id }) => id === limit.id);
  if (shownLimit === undefined) return yield* notFound("limit of spend");
  return { ...showLimit(shownLimit), uncounted_sessions: yield* uncountedBy(shownLimit, limits) };
});

const remove = Effect.fnUntraced(function* (place: Place) {
  const { accountId } = yield* Caller;
  const { scope, subject, projectId } = place;
  const row = {
    action: "spend_limit.removed",
    target: auditTarget(place),
    ...(projectId !== null && { projectId }),
  } as const;
  const removing = (yield* Spend).remove({ accountId, scope, subject });
  if (!(yield* removing.pipe(withAudit((isRemoved) => (isRemoved ? row : null)))))
    return yield* notFound("limit of spend");
});

/** A limit of the account, which its owners set. */
const setForAccount = Effect.fnUntraced(function* ({ scope, subject = "", ...typed }: typeof Wish.Type) {
  const caller = yield* Caller;
  const hasSubject = scope === "project" || scope === "person";
  if (hasSubject !== (subject !== ""))
    return yield* badRequest("subject", hasSubject ? `must be the id of the ${scope}` : "must be absent");
  if (scope === "project") yield* projectFor(caller, subject);
  if (scope === "person" && !(yield* (yield* Spend).hasPerson(caller.accountId, subject)))
    return yield* notFound("person");
  return yield* set({ scope, subject, projectId: scope === "project" ? subject : null }, typed);
});

const removeById = Effect.fnUntraced(function* (id: string) {
  const { accountId } = yield* Caller;
  const limits = yield* (yield* Spend).list(accountId, yield* Clock.currentTimeMillis);
  const limit = limits.find((one) => one.id === id);
  if (limit === undefined) return yield* notFound("limit of spend");
  yield* remove(limit);
});

const NOTHING: SpendSums = { tokens: 0, cost: 0 };

const ofScope = (sums: readonly SpentFor[], scope: SpendScope, month: string) =>
  sums
    .filter((sum) => sum.scope === scope && sum.period === month)
    .map((sum) => ({ id: sum.subject, name: sum.name, spent: sumsWire(sum) }));

const ofAccount = Effect.gen(function* () {
  const { accountId } = yield* Caller;
  const spend = yield* Spend;
  const now = yield* Clock.currentTimeMillis;
  const month = utcMonth(now);
  const sums = yield* spend.month(accountId, month);
  const whole = sums.find(({ scope, period }) => scope === "account" && period === month) ?? NOTHING;
  return {
    month,
    spent: sumsWire(whole),
    people: ofScope(sums, "person", month),
    projects: ofScope(sums, "project", month),
    days: sums
      .filter(({ scope, period }) => scope === "account" && period !== month)
      .map((sum) => ({ day: sum.period, spent: sumsWire(sum) }))
      .toSorted((one, other) => (one.day < other.day ? 1 : -1)),
    limits: (yield* spend.list(accountId, now)).map(showLimit),
  };
});

const ofProject = Effect.fnUntraced(function* (pid: string) {
  const caller = yield* Caller;
  yield* requireProject(caller, pid);
  const spend = yield* Spend;
  const now = yield* Clock.currentTimeMillis;
  const month = utcMonth(now);
  const sums = yield* spend.month(caller.accountId, month);
  const own = sums.find(({ scope, subject }) => scope === "project" && subject === pid) ?? NOTHING;
  const limits = yield* spend.list(caller.accountId, now);
  return {
    month,
    spent: sumsWire(own),
    limits: limits.filter(({ projectId }) => projectId === pid).map(showLimit),
  };
});

type SessionPath = { readonly pid: string; readonly sid: string };

const ofSession = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* sessionFor(yield* Caller, params);
  const spend = yield* Spend;
  const limits = yield* spend.ofSession(session, yield* Clock.currentTimeMillis);
  return {
    spent: sumsWire(yield* spend.spentBySession(session.id)),
    limits: limits.map(appliedWire),
  };
});

const sessionPlace = ({ pid, sid }: SessionPath) =>
  ({ scope: "session", subject: sid, projectId: pid }) as const;

/** A limit is set only where it holds. */
const limitSession = Effect.fnUntraced(function* (params: SessionPath, wish: TypedAmount) {
  const session = yield* sessionFor(yield* Caller, params);
  const calling = yield* callingSession(session);
  if (calling !== null)
    yield* requireCountable(session, calling).pipe(
      Effect.catchTags({
        LimitNeedsProvider: ({ message }) => limitNeedsProvider(message),
        GitError: (error) => gitFailed(error),
      }),
    );
  yield* set(sessionPlace(params), wish);
  return yield* ofSession(params);
});

type TriggerPath = { readonly pid: string; readonly slug: string };

const triggerPlace = ({ pid, slug }: TriggerPath) =>
  ({ scope: "trigger", subject: triggerSubject(pid, slug), projectId: pid }) as const;

export const spendHandlers = HttpApiBuilder.group(Platform.add(SpendGroup), "spend", (handlers) =>
  handlers
    .handle("account", () => withApiErrors(ofAccount))
    .handle("setLimit", ({ payload }) => withApiErrors(setForAccount(payload)))
    .handle("removeLimit", ({ params }) => withApiErrors(removeById(params.id)))
    .handle("project", ({ params }) => withApiErrors(ofProject(params.pid)))
    .handle("session", ({ params }) => withApiErrors(ofSession(params)))
    .handle("limitSession", ({ params, payload }) => withApiErrors(limitSession(params, payload)))
    .handle("unlimitSession", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* sessionFor(yield* Caller, params);
          yield* remove(sessionPlace(params));
        }),
      ),
    )
    .handle("limitTrigger", ({ params, payload }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* triggerFor(params);
          return yield* set(triggerPlace(params), payload);
        }),
      ),
    )
    .handle("unlimitTrigger", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          yield* remove(triggerPlace(params));
        }),
      ),
    ),
);
