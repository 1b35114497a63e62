/**
 * Puts changes on the audit record: who acts comes with the fiber, what changed from the call.
 *
 * A change of the store is recorded in its own transaction: `change.pipe(withAudit((made) => …))`. The work of an
 * actor is saved in a separate transaction, perhaps on another node. So it has two rows: `begun`, before the actor is asked,
 * and another one with the actor's answer. If the node dies between the two, the first row stays alone.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import {
  differences,
  keptChanges,
  type AuditAction,
  type AuditChanges,
  type AuditDifference,
  type AuditOutcome,
  type AuditValue,
} from "../domain/person/audit.ts";
import { Audit, type AuditActor, type NewAuditEvent } from "../store/ports/audit.ts";
import { newUuid } from "./entropy.ts";

/** Who acts, and from where. */
export interface Act {
  readonly actor: AuditActor;
  /** On null, see A5 of store/ports/audit.ts. */
  readonly accountId: string | null;
  /** The project that the request's path names. */
  readonly projectId: string | null;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
}

export const actAs = (kind: AuditActor["kind"], name: string | null = null): Act => ({
  actor: { kind, id: null, name, tokenId: null },
  accountId: null,
  projectId: null,
  address: null,
  userAgent: null,
  requestId: null,
});

/** Who acts. HTTP and the operator's commands provide it. Without one it is the service itself, as in a duty. */
export const Acting = Context.Reference<Act>("platform/services/Acting", {
  defaultValue: () => actAs("service"),
});

/** What a row says about a change. */
export interface AuditEntry {
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

const toRow = (
  entry: AuditEntry,
  { id, at, act, outcome }: { id: string; at: number; act: Act; outcome: AuditOutcome },
): NewAuditEvent => ({
  ...act,
  id,
  at,
  accountId: entry.accountId ?? act.accountId,
  projectId: entry.projectId ?? act.projectId,
  actor: entry.actor ?? act.actor,
  action: entry.action,
  target: entry.target ?? null,
  outcome,
  changes: keptChanges(entry.changes ?? {}),
});

/** The id of a row, the instant, and who acts. */
const occasion = Effect.gen(function* () {
  return { id: yield* newUuid, at: yield* Clock.currentTimeMillis, act: yield* Acting };
});

/**
 * Performs a change of the store and writes its row, in one transaction.
 *
 * @param say what to record of the result. Null if nothing changed, and there is no row.
 */
export const withAudit =
  <A>(say: (result: A) => AuditEntry | null) =>
  <E, R>(change: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const audit = yield* Audit;
      const row = { ...(yield* occasion), outcome: "done" } as const;
      return yield* audit.recorded(change, (result) => {
        const entry = say(result);
        return entry === null ? null : toRow(entry, row);
      });
    });

/**
 * Performs a change that replaces values, and writes its row with what they were.
 *
 * @param about.target the id of what changes
 * @param about.read its values, by the name of each. Null if it does not exist.
 * @param about.say what to record of the differences. It is asked only if the change was made. Null if nothing changed.
 */
export const auditedChange =
  <Field extends string, E2, R2>(about: {
    readonly target: string;
    readonly read: Effect.Effect<Readonly<Record<Field, AuditValue>> | null, E2, R2>;
    readonly say: (differences: Readonly<Partial<Record<Field, AuditDifference>>>) => AuditEntry | null;
  }) =>
  <A, E, R>(change: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      yield* (yield* Audit).alone(about.target);
      const before = yield* about.read;
      const result = yield* change;
      const after = yield* about.read;
      const entry = before === null || after === null ? null : about.say(differences(before, after));
      return { made: result, said: entry };
    }).pipe(
      withAudit(({ said }) => said),
      Effect.map(({ made }) => made),
    );

/** A row of differences. Null if no value differs. */
export const unlessSame = (entry: AuditEntry): AuditEntry | null =>
  Object.values(entry.changes ?? {}).every((value) => value === undefined) ? null : entry;

const append = Effect.fnUntraced(function* (entry: AuditEntry, outcome: AuditOutcome) {
  yield* (yield* Audit).append(toRow(entry, { ...(yield* occasion), outcome }));
});

/** Records what is about to be done, where nothing will say how it ended. */
export const auditBegin = (entry: AuditEntry) => append(entry, "begun");

/**
 * Asks an actor between two rows: `begun`, and how it ended. Wrap the question alone, after all checks. A caller who leaves does not end the
 * question, and the second row is written all the same. A question that fails has no second row: its outcome is unknown.
 *
 * @param refusedFor why the actor refused. Null if it did what it was asked for.
 */
export const auditedAsk =
  <Part>(entry: AuditEntry, refusedFor: (answer: Part) => string | null) =>
  <A extends Part, E, R>(ask: Effect.Effect<A, E, R>) =>
    Effect.andThen(
      auditBegin(entry),
      Effect.flatMap(
        Effect.forkDetach(
          Effect.tap(ask, (answer) => {
            const why = refusedFor(answer);
            return why === null
              ? append(entry, "done")
              : append({ ...entry, changes: { ...entry.changes, why } }, "refused");
          }),
        ),
        Fiber.join,
      ),
    );

/**
 * How many refused entries each node records in an hour, and how many refused requests. An attacker who tries all day fills the
 * table no faster than this: 1,752,000 rows in a year, about 600 MB.
 */
export const REFUSALS_PER_HOUR = 100;
const HOUR_MS = 60 * 60 * 1000;

/** The refusals of one kind in the current hour. */
class RefusalHour {
  #since = 0;
  #taken = 0;
  #omitted = 0;
  /** At most as many as were taken. */
  readonly #known = new Set<string>();

  /** @returns how many were left out since the last recorded one. If null, this one is left out too. */
  take(key: string | null, now: number): number | null {
    if (now - this.#since >= HOUR_MS || now < this.#since) {
      [this.#since, this.#taken] = [now, 0];
      this.#known.clear();
    }
    if (this.#taken >= REFUSALS_PER_HOUR || (key !== null && this.#known.has(key))) {
      this.#omitted += 1;
      return null;
    }
    this.#taken += 1;
    if (key !== null) this.#known.add(key);
    const left = this.#omitted;
    this.#omitted = 0;
    return left;
  }
}

/** Counts the refusals of this node. A restart begins a new hour. */
export class Refusals extends Context.Service<
  Refusals,
  { readonly entries: RefusalHour; readonly requests: RefusalHour }
>()("platform/services/Refusals") {
  static readonly layer = Layer.sync(Refusals, () => ({
    entries: new RefusalHour(),
    requests: new RefusalHour(),
  }));
}

const auditRefusal = Effect.fnUntraced(function* (entry: AuditEntry, omittedCount: number | null) {
  if (omittedCount === null) return;
  const changes = { ...entry.changes, ...(omittedCount > 0 && { omitted_before: omittedCount }) };
  yield* append({ ...entry, changes }, "refused");
});

/** Records a refused sign-in or invitation, within the limit. */
export const recordRefusedEntry = Effect.fnUntraced(function* (entry: AuditEntry) {
  const { entries } = yield* Refusals;
  yield* auditRefusal(entry, entries.take(null, yield* Clock.currentTimeMillis));
});

/**
 * Records a refused request of the API, within the limit.
 *
 * @param key the same for requests of which one an hour is enough: a program with an ended token may ask each second
 */
export const recordRefusedRequest = Effect.fnUntraced(function* (entry: AuditEntry, key: string) {
  const { requests } = yield* Refusals;
  yield* auditRefusal(entry, requests.take(key, yield* Clock.currentTimeMillis));
});
