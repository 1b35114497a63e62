/**
 * Decides a batch of wishes for sessions (api.md 4 "Admission", "Queue", "Webhook: Duplicates") from what an adapter read
 * under the account's lock. Pure, and shared by both adapters: they read the facts and carry out the plan.
 *
 *  N1 Wishes are decided in their order; each sees what those before it did.
 *  N2 At most `cap - activeSessions` of them are admitted.
 *  N3 A fire is written at most once under its delivery id and under its cron instant.
 */
import { DELIVERY_WINDOW_MS, type Admission, type AdmissionRequest } from "./port.ts";
import type { Fire, FireStatus, NewFire, NewSession } from "./records.ts";

export interface AdmissionFacts {
  readonly cap: number;
  readonly activeSessions: number;
  /** Waiting fires of the account. */
  readonly waiting: number;
  readonly activeProjects: ReadonlySet<string>;
  /** The rows that answer for the batch's delivery ids, and those of its cron instants. */
  readonly known: readonly Fire[];
  /** The waiting cron fires of the batch's triggers. */
  readonly waitingCron: readonly Pick<Fire, "id" | "projectId" | "triggerSlug">[];
}

/** A ledger row as it is to be; `isNew: false` takes the place of the row with its id. */
export interface PlannedFire extends Fire {
  readonly accountId: string;
  readonly firedAt: number | null;
}
export interface PlannedSession {
  readonly session: NewSession;
  readonly fireId: string | null;
  readonly now: number;
}
export interface PlannedEntry {
  readonly fire: PlannedFire;
  readonly session: NewSession;
  readonly queuedAt: number;
  readonly expiresAt: number;
}
export interface AdmissionPlan {
  readonly answers: readonly Admission[];
  readonly sessions: readonly PlannedSession[];
  /** Rows to insert, or to overwrite under the id they have. */
  readonly fires: readonly PlannedFire[];
  readonly queue: readonly PlannedEntry[];
  /** Waiting cron fires, written before this batch, that a later instant replaces. */
  readonly overlapped: readonly string[];
  /** Rows that answer no longer for their delivery id: it was seen again after the window. */
  readonly outlived: readonly string[];
}

/** What makes two fires the same one; null: nothing does. */
export const identityOf = (
  fire: Pick<Fire, "projectId" | "triggerSlug" | "kind" | "deliveryId" | "scheduledFor" | "replayOf">,
): string | null => {
  if (fire.replayOf !== null) return null;
  if (fire.kind === "cron") return JSON.stringify([fire.projectId, fire.triggerSlug, fire.scheduledFor]);
  return fire.deliveryId === null
    ? null
    : JSON.stringify([fire.projectId, fire.triggerSlug, "delivery", fire.deliveryId]);
};

/** Whether a row answers for its delivery id (the unique index goes by it). */
export const answersDelivery = (fire: Fire): boolean =>
  fire.kind !== "cron" && fire.deliveryId !== null && fire.replayOf === null;

/** Rows of these are tried again when their delivery comes again (api.md 4 "Webhook"). */
const SETTLED: ReadonlySet<FireStatus> = new Set(["failed", "expired", "cancelled"]);

/** A fire's row before anything became of it. */
const rowOf = (fire: NewFire, former: Fire | null): PlannedFire => ({
  id: former?.id ?? fire.id,
  accountId: fire.accountId,
  projectId: fire.projectId,
  triggerSlug: fire.triggerSlug,
  kind: former?.kind ?? fire.kind,
  status: "failed",
  reason: null,
  scheduledFor: fire.scheduledFor,
  receivedAt: fire.receivedAt,
  deliveryId: fire.deliveryId,
  sessionId: null,
  attempts: (former?.attempts ?? 0) + 1,
  replayOf: fire.replayOf,
  firedAt: null,
});

type Former =
  | { readonly is: "answer"; readonly fire: Fire }
  /** Tried again under the same row. */
  | { readonly is: "retry"; readonly fire: Fire }
  | { readonly is: "none" };

class Planner {
  readonly #facts: AdmissionFacts;
  readonly #known = new Map<string, Fire>();
  readonly #waitingCron = new Map<string, string>();
  readonly #sessions: PlannedSession[] = [];
  readonly #fires = new Map<string, PlannedFire>();
  readonly #queue = new Map<string, PlannedEntry>();
  readonly #overlapped: string[] = [];
  readonly #outlived: string[] = [];
  #slots: number;
  #waiting: number;

  constructor(facts: AdmissionFacts) {
    this.#facts = facts;
    this.#slots = facts.cap - facts.activeSessions;
    this.#waiting = facts.waiting;
    for (const fire of facts.known) {
      const identity = identityOf(fire);
      if (identity !== null) this.#known.set(identity, fire);
    }
    for (const { id, projectId, triggerSlug } of facts.waitingCron) {
      this.#waitingCron.set(`${projectId}/${triggerSlug}`, id);
    }
  }

  plan(answers: readonly Admission[]): AdmissionPlan {
    return {
      answers,
      sessions: this.#sessions,
      fires: [...this.#fires.values()],
      queue: [...this.#queue.values()],
      overlapped: this.#overlapped,
      outlived: this.#outlived,
    };
  }

  decide(request: AdmissionRequest): Admission {
    const { session, fire, now } = request;
    if (!this.#facts.activeProjects.has(session.projectId)) return { outcome: "inactive" };
    if (fire === null) return this.#slots > 0 ? this.#start(session, null, now) : this.#refusal();
    const former = this.#former(fire, now);
    if (former.is === "answer") return { outcome: "duplicate", fire: former.fire };
    const row = rowOf(fire, former.is === "retry" ? former.fire : null);
    if (this.#slots > 0) return this.#start(session, row, now);
    return request.atCap === "refuse" ? this.#refusal() : this.#wait(request, fire, row);
  }

  #refusal(): Admission {
    const { cap, activeSessions } = this.#facts;
    return { outcome: "refused", limit: cap, activeSessions: activeSessions + this.#sessions.length };
  }

  #former(fire: NewFire, now: number): Former {
    const identity = identityOf(fire);
    const known = identity === null ? undefined : this.#known.get(identity);
    if (known === undefined) return { is: "none" };
    if (fire.kind === "cron") return { is: "answer", fire: known };
    if (now - known.receivedAt > DELIVERY_WINDOW_MS) {
      this.#outlived.push(known.id);
      return { is: "none" };
    }
    return { is: SETTLED.has(known.status) ? "retry" : "answer", fire: known };
  }

  #write(row: PlannedFire): void {
    this.#fires.set(row.id, row);
    const identity = identityOf(row);
    const { accountId: _account, firedAt: _firedAt, ...fire } = row;
    if (identity !== null) this.#known.set(identity, fire);
  }

  #start(session: NewSession, row: PlannedFire | null, now: number): Admission {
    this.#slots -= 1;
    this.#sessions.push({ session, fireId: row?.id ?? null, now });
    if (row !== null) this.#write({ ...row, status: "fired", sessionId: session.id, firedAt: now });
    return { outcome: "admitted", sessionId: session.id, fireId: row?.id ?? null };
  }

  #wait({ session, now }: AdmissionRequest, fire: NewFire, row: PlannedFire): Admission {
    const trigger = `${fire.projectId}/${fire.triggerSlug}`;
    const replaced = fire.kind === "cron" ? this.#waitingCron.get(trigger) : undefined;
    if (replaced === undefined && this.#waiting >= fire.queueMax) {
      return { outcome: "queue_full", limit: fire.queueMax };
    }
    if (replaced === undefined) this.#waiting += 1;
    else this.#replace(replaced);
    if (fire.kind === "cron") this.#waitingCron.set(trigger, row.id);
    const queued: PlannedFire = { ...row, status: "queued", reason: "account_session_cap" };
    this.#write(queued);
    this.#queue.set(row.id, { fire: queued, session, queuedAt: now, expiresAt: now + fire.queueTtlMs });
    return { outcome: "queued", fireId: row.id };
  }

  /** The waiting fire gives its place to a later instant of its trigger. */
  #replace(id: string): void {
    const planned = this.#fires.get(id);
    if (planned === undefined) this.#overlapped.push(id);
    else {
      this.#queue.delete(id);
      this.#write({ ...planned, status: "skipped", reason: "overlapped" });
    }
  }
}

/**
 * The row of a fire that could not start. A fire that is under way or done already keeps its row (`row: null`), one that
 * failed before is marked again, and one whose delivery id is from before the window gets a row of its own.
 */
export const planFailure = (
  fire: NewFire,
  failure: { readonly reason: string; readonly former: Fire | null },
): { readonly row: PlannedFire | null; readonly outlived: string | null } => {
  const { reason, former } = failure;
  const isOutlived =
    former !== null && fire.kind !== "cron" && fire.receivedAt - former.receivedAt > DELIVERY_WINDOW_MS;
  if (former === null || isOutlived) {
    return { row: { ...rowOf(fire, null), reason }, outlived: former?.id ?? null };
  }
  const isRetried = fire.kind !== "cron" && SETTLED.has(former.status);
  return { row: isRetried ? { ...rowOf(fire, former), reason } : null, outlived: null };
};

/** One answer a wish, in the same order, and what is to be written so that they are true. */
export const planAdmissions = (
  facts: AdmissionFacts,
  requests: readonly AdmissionRequest[],
): AdmissionPlan => {
  const planner = new Planner(facts);
  const answers = requests.map((request) => planner.decide(request));
  return planner.plan(answers);
};
