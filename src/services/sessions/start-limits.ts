/**
 * What limits of spend say about sessions that the service starts by itself: waiting fires that leave the queue, and sessions that it wakes.
 * Limits, keys and providers may have changed since a person or a trigger asked for them.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { GitBackend } from "../../git/port.ts";
import type { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import type { Stored } from "../../store/ports/journal.ts";
import type { Secrets } from "../../store/ports/projects/secrets.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { Admissions, type RefusedWait, type WaitingFire } from "../../store/ports/triggers/admissions.ts";
import type { Directory } from "../directory.ts";
import { AccountSpend } from "../projects/account-spend.ts";
import { callingSession, requireCounted } from "../projects/counted-models.ts";
import { fireLimits } from "../triggers/fire-limits.ts";

export interface StartLimitsPort {
  /**
   * Ends the waits of the fires that would start next and may not. True: some ended, and others stand in their places now.
   *
   * @param count how many of the account's first fires are asked for
   */
  readonly refuseWaiting: (accountId: string, count: number) => Stored<boolean>;
  /** Why a session may not start again, in a sentence. Null if it may. */
  readonly refusal: (session: Session) => Stored<string | null>;
}

const NO_LIMITS: StartLimitsPort = {
  refuseWaiting: () => Effect.succeed(false),
  refusal: () => Effect.succeed(null),
};

/** Alone, actors start everything. */
export const StartLimits = Context.Reference<StartLimitsPort>("platform/services/StartLimits", {
  defaultValue: () => NO_LIMITS,
});

/** Actors are made before what the limits need. So they get these through a place that is filled later. */
export class LaterLimits extends Context.Service<LaterLimits, { limits: StartLimitsPort }>()(
  "platform/services/LaterLimits",
) {
  static readonly layer = Layer.effectContext(
    Effect.sync(() => {
      const later = { limits: NO_LIMITS };
      const port: StartLimitsPort = {
        refuseWaiting: (accountId, count) => later.limits.refuseWaiting(accountId, count),
        refusal: (session) => later.limits.refusal(session),
      };
      return Context.make(LaterLimits, later).pipe(Context.add(StartLimits, port));
    }),
  );
}

type Asked = Parameters<typeof callingSession>[0];

/** Why the calls of a session could not be counted. Null if they are, or that cannot be known now. */
const uncountedReason = Effect.fnUntraced(function* (session: Asked) {
  const calling = yield* callingSession(session);
  if (calling === null) return null;
  return yield* requireCounted(session, calling).pipe(
    Effect.as(null),
    Effect.catchTags({
      LimitNeedsProvider: ({ message }) => Effect.succeed(message),
      GitError: () => Effect.succeed(null),
    }),
  );
});

/** Fills the place. */
export const startLimitsLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const admissions = yield* Admissions;
    const spend = yield* AccountSpend;
    const limits = yield* fireLimits;
    const services = yield* Effect.context<Directory | Secrets | Suspensions | GitBackend>();

    const refuseWait = Effect.fnUntraced(function* ({ fireId, kind, session }: WaitingFire) {
      const request = { ...session, parentSessionId: session.parentSessionId ?? null };
      const needsProvider: RefusedWait = { fireId, status: "failed", reason: "limit_needs_provider" };
      // A person's request starts at a limit that is reached: she can raise it.
      if (kind === "session") return (yield* uncountedReason(request)) === null ? null : needsProvider;
      const refusal = yield* limits({ session: request, agent: session.agentName, personId: null });
      if (refusal === null) return null;
      const skip: RefusedWait = { fireId, status: "skipped", reason: "spend_limit" };
      return refusal.is === "skipped" ? skip : needsProvider;
    });

    (yield* LaterLimits).limits = {
      refuseWaiting: Effect.fnUntraced(function* (accountId, count) {
        if (!(yield* spend.isLimited(accountId))) return false;
        const heads = yield* admissions.heads(accountId, count);
        const ends = yield* Effect.provideContext(Effect.forEach(heads, refuseWait), services);
        const refusals = ends.filter((end): end is RefusedWait => end !== null);
        if (refusals.length === 0) return false;
        yield* admissions.refuse(accountId, refusals, yield* Clock.currentTimeMillis);
        return true;
      }),
      refusal: Effect.fnUntraced(function* (session) {
        const isLimited = yield* spend.isLimited(session.accountId);
        return isLimited ? yield* Effect.provideContext(uncountedReason(session), services) : null;
      }),
    };
  }),
);
