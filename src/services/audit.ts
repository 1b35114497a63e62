/**
 * Puts changes on the audit record: who acts comes with the fiber, what changed from the call.
 *
 * A change of the store is recorded in its own transaction: `change.pipe(audited((made) => …))`. The work of an
 * actor is recorded before the actor is asked, with the outcome `begun`: it saves in a transaction of its own, maybe on
 * another node.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { keptChanges, type AuditAction, type AuditChanges, type AuditOutcome } from "../domain/audit.ts";
import { Audit, type AuditActor, type NewAuditEvent } from "../store/ports/audit.ts";
import { newUuid } from "./entropy.ts";

/** Who acts, and from where. */
export interface Act {
  readonly actor: AuditActor;
  /** Null: see A5 of store/ports/audit.ts. */
  readonly accountId: string | null;
  /** The project that the request's path names. */
  readonly projectId: string | null;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
}

export const actOf = (kind: AuditActor["kind"], name: string | null = null): Act => ({
  actor: { kind, id: null, name, tokenId: null },
  accountId: null,
  projectId: null,
  address: null,
  userAgent: null,
  requestId: null,
});

/** Who acts. HTTP and the operator's commands provide it. Without one it is the service itself, as in a duty. */
export const Acting = Context.Reference<Act>("platform/services/Acting", {
  defaultValue: () => actOf("service"),
});

/** What a row says about a change. */
export interface Said {
  readonly action: AuditAction;
  /** The id or the name of what changed. */
  readonly target?: string | null;
  readonly changes?: Readonly<Record<string, AuditChanges[string] | undefined>>;
  /** The default is the request's project. */
  readonly projectId?: string;
  /** The default is the caller's account. */
  readonly accountId?: string | undefined;
  /** The person that a sign-in has found. */
  readonly actor?: AuditActor;
}

const rowOf = (
  said: Said,
  { id, at, act, outcome }: { id: string; at: number; act: Act; outcome: AuditOutcome },
): NewAuditEvent => ({
  ...act,
  id,
  at,
  accountId: said.accountId ?? act.accountId,
  projectId: said.projectId ?? act.projectId,
  actor: said.actor ?? act.actor,
  action: said.action,
  target: said.target ?? null,
  outcome,
  changes: keptChanges(said.changes ?? {}),
});

/** The id of a row, the instant, and who acts. */
const seen = Effect.gen(function* () {
  return { id: yield* newUuid, at: yield* Clock.currentTimeMillis, act: yield* Acting };
});

/**
 * Performs a change of the store and writes its row, in one transaction.
 *
 * @param say what to record of the result. Null: nothing changed, and there is no row.
 */
export const audited =
  <A>(say: (made: A) => Said | null) =>
  <E, R>(change: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const audit = yield* Audit;
      const row = { ...(yield* seen), outcome: "done" } as const;
      return yield* audit.recorded(change, (made) => {
        const said = say(made);
        return said === null ? null : rowOf(said, row);
      });
    });

const append = Effect.fnUntraced(function* (said: Said, outcome: AuditOutcome) {
  yield* (yield* Audit).append(rowOf(said, { ...(yield* seen), outcome }));
});

/** Records what an actor is about to be asked for. Call it after all checks, just before the actor is asked. */
export const begun = (said: Said) => append(said, "begun");

/**
 * How many refused entries each node records in an hour. An attacker who tries all day fills the table no faster than
 * this: 876,000 rows in a year, about 300 MB.
 */
export const REFUSALS_PER_HOUR = 100;
const HOUR_MS = 60 * 60 * 1000;

/** Counts the refused entries of this node. A restart begins a new hour. */
export class RefusedEntries extends Context.Service<
  RefusedEntries,
  {
    /** @returns how many were left out since the last recorded one. Null: this one is left out too. */
    readonly take: (now: number) => number | null;
  }
>()("platform/services/RefusedEntries") {
  static readonly layer = Layer.sync(RefusedEntries, () => {
    let [since, taken, omitted] = [0, 0, 0];
    return {
      take: (now) => {
        if (now - since >= HOUR_MS || now < since) [since, taken] = [now, 0];
        if (taken >= REFUSALS_PER_HOUR) {
          omitted += 1;
          return null;
        }
        taken += 1;
        const left = omitted;
        omitted = 0;
        return left;
      },
    };
  });
}

/** Records a refused sign-in or invitation, within the limit. */
export const refusedEntry = Effect.fnUntraced(function* (said: Said) {
  const omitted = (yield* RefusedEntries).take(yield* Clock.currentTimeMillis);
  if (omitted === null) return;
  const changes = { ...said.changes, ...(omitted > 0 && { omitted_before: omitted }) };
  yield* append({ ...said, changes }, "refused");
});
