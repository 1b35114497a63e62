/**
 * Decides a batch of wishes for sessions (api.md 4 "Admission", "Queue", "Duplicates") from what an adapter read
 * under the account's lock. Pure, and shared by both adapters: they read the facts and carry out the plan.
 *
 *  N1 Wishes are decided in their order; each sees what those before it did.
 *  N2 At most `cap - activeSessions` of them are admitted.
 *  N3 A fire is written at most once under its delivery id and under its cron instant.
 *  N4 A fire that may wait does not overtake those that wait, also where a slot is free: the next drain gives it to them.
 *  N5 A wish that was decided by a former version of its project is not decided at all.
 *  N6 The agent of a session starts at most CHILDREN_MAX live sessions.
 */
import * as Result from "effect/Result";
import { isRetried, requireMove } from "../../domain/trigger/fire.ts";
import { renderCronPrompt, type CronTemplate } from "../../domain/trigger/prompt.ts";
import { CHILDREN_MAX } from "../../domain/session/session.ts";
import { isBlank } from "../../domain/text.ts";
import {
  DELIVERY_WINDOW_MS,
  type Admission,
  type AdmissionRequest,
  type FireWish,
  type RequestWish,
  type PromptFailure,
} from "../ports/triggers/admissions.ts";
import type { DeliverySkip, Fire, FirePrompt, NewFire, StoredRequest } from "../ports/triggers/fires.ts";
import type { NewSession } from "../ports/sessions/sessions.ts";

export interface AdmissionFacts {
  readonly cap: number;
  readonly activeSessions: number;
  /** Waiting fires of the account. */
  readonly waiting: number;
  /** Version of each active project. */
  readonly activeProjects: ReadonlyMap<string, number>;
  /** How many live sessions the batch's parents have, by the parent's id. An absent one has none. */
  readonly liveChildren: ReadonlyMap<string, number>;
  /** last_fired_at by `triggerKey`, of the batch's cron triggers. */
  readonly lastFired: ReadonlyMap<string, number>;
  /** The rows that answer for the batch's delivery ids, and those of its cron instants. */
  readonly known: readonly Fire[];
  /** Those of the known fires whose session failed before its first turn. */
  readonly lost: ReadonlySet<string>;
  /** The waiting cron fires of the batch's triggers. */
  readonly waitingCron: readonly Pick<Fire, "id" | "projectId" | "triggerSlug">[];
}

/** A ledger row after the admission. */
export interface PlannedFire extends Fire {
  readonly accountId: string;
  /** Whether it answers for its delivery id (the unique index goes by it). */
  readonly answersDelivery: boolean;
  readonly firedAt: number | null;
  /** When its status was decided: with the request, or at the end of its wait. */
  readonly decidedAt: number;
}
export interface PlannedSession {
  readonly session: NewSession;
  readonly fireId: string | null;
  readonly now: number;
}
export interface PlannedEntry {
  readonly fire: PlannedFire;
  readonly session: NewSession;
  /** Renders the prompt when the fire starts its session; null: the session has its prompt. */
  readonly template: CronTemplate | null;
  /** The waiting fire, written before this batch, whose place in the queue it takes; null: it is the last. */
  readonly replaces: string | null;
  /** It takes the last place of a queue of this many. Null if places are left. */
  readonly fills: number | null;
  readonly queuedAt: number;
  readonly expiresAt: number;
}
export interface AdmissionPlan {
  readonly answers: readonly Admission[];
  readonly sessions: readonly PlannedSession[];
  /** Rows to insert, or to overwrite under the id they have. */
  readonly fires: readonly PlannedFire[];
  readonly queue: readonly PlannedEntry[];
  /** What the fires came with, by their row's id; it takes the place of what an earlier attempt came with. */
  readonly requests: ReadonlyMap<string, StoredRequest>;
  /** Rows that are tried again with what is too large to be stored: what they came with before is theirs no longer. */
  readonly forgotten: readonly string[];
  /** Waiting cron fires, written before this batch, that a later instant replaces. */
  readonly overlapped: readonly string[];
  /** Rows that answer no longer for their delivery id: it was seen again after the window, or after their session was lost. */
  readonly outlived: readonly string[];
}

/** A trigger among those of all projects. Requests of persons have an empty one, which is no trigger's. */
export const triggerKey = (of: Pick<Fire, "projectId" | "triggerSlug">): string =>
  `${of.projectId}/${of.triggerSlug ?? ""}`;

/** What makes two fires the same one; null: nothing does. A person's replay is never the same as another fire. */
export const fireIdentity = (
  fire: Pick<Fire, "projectId" | "triggerSlug" | "kind" | "deliveryId" | "scheduledFor">,
): string | null => {
  if (fire.kind === "cron") return JSON.stringify([fire.projectId, fire.triggerSlug, fire.scheduledFor]);
  return fire.deliveryId === null
    ? null
    : JSON.stringify([fire.projectId, fire.triggerSlug, "delivery", fire.deliveryId]);
};

export const newIdentity = (fire: NewFire): string | null =>
  fire.replayOf === null ? fireIdentity(fire) : null;

/** A fire's row before anything became of it. `retried`: the row it has already. */
const toRow = (fire: NewFire, { retried, replayOf }: FormerRows): PlannedFire => ({
  id: retried?.id ?? fire.id,
  accountId: fire.accountId,
  answersDelivery: fire.kind !== "cron" && newIdentity(fire) !== null,
  projectId: fire.projectId,
  triggerSlug: fire.triggerSlug,
  kind: retried?.kind ?? fire.kind,
  status: "failed",
  reason: null,
  scheduledFor: fire.scheduledFor,
  receivedAt: fire.receivedAt,
  deliveryId: fire.deliveryId,
  sessionId: null,
  attempts: (retried?.attempts ?? 0) + 1,
  replayOf: replayOf ?? retried?.replayOf ?? fire.replayOf,
  duplicateOf: null,
  verifiedWith: fire.verifiedWith ?? null,
  firedAt: null,
  decidedAt: fire.receivedAt,
});

interface FormerRows {
  /** Tried again under the same row. */
  readonly retried?: Fire;
  /** Its session was lost. The row of the new try names it, and answers for the delivery id from then on. */
  readonly replayOf?: string;
}
type Former =
  | { readonly is: "answer"; readonly fire: Fire }
  | { readonly is: "none"; readonly rows: FormerRows };

/** A session with its fire's prompt in it. */
export const promptedSession = (
  session: NewSession,
  prompt: Exclude<FirePrompt, { readonly is: "skipped" }>,
  lastFiredAt: number | null,
): Result.Result<NewSession, PromptFailure> => {
  if (prompt.is === "too_large") return Result.fail("prompt_too_large");
  if (prompt.is === "no_model" || prompt.is === "unknown_model" || prompt.is === "limit_needs_provider")
    return Result.fail(prompt.is);
  if (prompt.is === "own") return Result.succeed(session);
  const rendering =
    prompt.is === "rendered"
      ? Result.succeed(prompt.text)
      : Result.mapError(renderCronPrompt(prompt.template, lastFiredAt), () => "prompt_too_large" as const);
  return Result.flatMap(rendering, (initialPrompt) =>
    isBlank(initialPrompt)
      ? Result.fail("prompt_empty" as const)
      : Result.succeed({ ...session, initialPrompt }),
  );
};

/** As a row can hold it; rendering would take the NULs out, too (threats.md P09). */
const storable = (template: CronTemplate): CronTemplate => ({
  ...template,
  prompt: template.prompt.replaceAll("\0", ""),
});

const isOutlived = (fire: Fire, now: number): boolean => now - fire.receivedAt > DELIVERY_WINDOW_MS;

class Planner {
  readonly #facts: AdmissionFacts;
  readonly #known = new Map<string, Fire>();
  readonly #waitingCron = new Map<string, string>();
  readonly #lastFired: Map<string, number>;
  readonly #children: Map<string, number>;
  readonly #sessions: PlannedSession[] = [];
  readonly #fires = new Map<string, PlannedFire>();
  /** In their order, a cron trigger's by its key: a later instant's takes the place of the one it replaces. */
  readonly #queue = new Map<string, PlannedEntry>();
  readonly #requests = new Map<string, StoredRequest>();
  readonly #forgotten: string[] = [];
  readonly #overlapped: string[] = [];
  readonly #outlived: string[] = [];
  #slots: number;
  #waiting: number;

  constructor(facts: AdmissionFacts) {
    this.#facts = facts;
    this.#slots = facts.cap - facts.activeSessions;
    this.#waiting = facts.waiting;
    this.#lastFired = new Map(facts.lastFired);
    this.#children = new Map(facts.liveChildren);
    for (const fire of facts.known) {
      const identity = fireIdentity(fire);
      if (identity !== null) this.#known.set(identity, fire);
    }
    for (const waiting of facts.waitingCron) this.#waitingCron.set(triggerKey(waiting), waiting.id);
  }

  plan(answers: readonly Admission[]): AdmissionPlan {
    return {
      answers,
      sessions: this.#sessions,
      fires: [...this.#fires.values()],
      queue: [...this.#queue.values()],
      requests: this.#requests,
      forgotten: this.#forgotten,
      overlapped: this.#overlapped,
      outlived: this.#outlived,
    };
  }

  decide(request: AdmissionRequest): Admission {
    const { kind, session, fire, projectVersion, now } = request;
    const version = this.#facts.activeProjects.get(session.projectId);
    if (version === undefined) return { outcome: "inactive" };
    if (projectVersion !== null && projectVersion !== version) return { outcome: "stale" };
    if (this.#hasAllChildren(session)) return { outcome: "children_full", limit: CHILDREN_MAX };
    if (fire === null) return this.#slots > 0 ? this.#start(session, null, now) : this.#refusal();
    const former = this.#former(fire, now);
    if (former.is === "answer") return this.#duplicate(fire, former.fire);
    const row = toRow(fire, former.rows);
    if (fire.prompt.is === "skipped") return this.#skip(row, fire, fire.prompt.reason);
    const mayWait = kind !== "hand";
    const hasSlot = this.#slots > 0 && (!mayWait || this.#waiting === 0);
    if (!hasSlot && !mayWait) return this.#refusal();
    this.#keep(row, fire);
    const lastFiredAt = this.#lastFired.get(triggerKey(fire)) ?? null;
    const promptResult = promptedSession(session, fire.prompt, lastFiredAt);
    if (Result.isFailure(promptResult)) return this.#fail(row, promptResult.failure);
    if (!hasSlot) return this.#wait(request, fire, row);
    return this.#start(promptResult.success, kind === "request" ? null : row, now);
  }

  /** What the fire came with takes the place of what an attempt before came with, also of this batch. */
  #keep(row: PlannedFire, { id, request }: NewFire): void {
    if (request !== null) this.#requests.set(row.id, request);
    else if (row.id !== id) {
      this.#requests.delete(row.id);
      this.#forgotten.push(row.id);
    }
  }

  #hasAllChildren({ parentSessionId }: NewSession): boolean {
    return parentSessionId !== undefined && (this.#children.get(parentSessionId) ?? 0) >= CHILDREN_MAX;
  }

  #refusal(): Admission {
    const { cap, activeSessions } = this.#facts;
    return { outcome: "refused", limit: cap, activeSessions: activeSessions + this.#sessions.length };
  }

  #former(fire: NewFire, now: number): Former {
    const identity = newIdentity(fire);
    const former = identity === null ? undefined : this.#known.get(identity);
    if (former === undefined) return { is: "none", rows: {} };
    if (fire.kind === "cron") return { is: "answer", fire: former };
    if (isRetried(former.status) && !isOutlived(former, now))
      return { is: "none", rows: { retried: former } };
    if (isOutlived(former, now) || this.#facts.lost.has(former.id)) {
      this.#outlived.push(former.id);
      return { is: "none", rows: isOutlived(former, now) ? {} : { replayOf: former.id } };
    }
    return { is: "answer", fire: former };
  }

  /** A delivery that came again leaves a row that says so. Another node's fire of the same due instant is no event. */
  #duplicate(fire: NewFire, former: Fire): Admission {
    if (fire.kind === "cron") return { outcome: "accounted" };
    const row: PlannedFire = {
      ...toRow(fire, {}),
      status: "duplicate",
      reason: "same_delivery",
      answersDelivery: false,
      duplicateOf: former.id,
    };
    requireMove("new", row.status);
    this.#fires.set(row.id, row);
    return { outcome: "duplicate", fire: former };
  }

  /** It takes no slot and waits for none. Its row answers for its delivery, whatever the filter becomes. */
  #skip(row: PlannedFire, fire: NewFire, reason: DeliverySkip): Admission {
    this.#keep(row, fire);
    this.#write({ ...row, status: "skipped", reason, attempts: 0 });
    return { outcome: "skipped", fireId: row.id, reason };
  }

  #fail(row: PlannedFire, reason: PromptFailure): Admission {
    this.#write({ ...row, status: "failed", reason });
    return { outcome: "failed", fireId: row.id, reason };
  }

  #write(row: PlannedFire): void {
    const isInstant = row.kind === "cron" && row.replayOf === null;
    const identity = row.answersDelivery || isInstant ? fireIdentity(row) : null;
    const formerFire = identity === null ? undefined : this.#known.get(identity);
    const former = this.#fires.get(row.id) ?? (formerFire?.id === row.id ? formerFire : undefined);
    requireMove(former?.status ?? "new", row.status);
    this.#fires.set(row.id, row);
    const { accountId: _account, firedAt: _at, decidedAt: _decided, answersDelivery: _is, ...fire } = row;
    if (identity !== null) this.#known.set(identity, fire);
  }

  #start(session: NewSession, row: PlannedFire | null, now: number): Admission {
    this.#slots -= 1;
    this.#sessions.push({ session, fireId: row?.id ?? null, now });
    const { parentSessionId: parent } = session;
    if (parent !== undefined) this.#children.set(parent, (this.#children.get(parent) ?? 0) + 1);
    if (row !== null) {
      this.#write({ ...row, status: "fired", sessionId: session.id, firedAt: now });
      const trigger = triggerKey(row);
      this.#lastFired.set(trigger, Math.max(this.#lastFired.get(trigger) ?? now, now));
    }
    return { outcome: "admitted", sessionId: session.id, fireId: row?.id ?? null };
  }

  #wait({ session, now }: FireWish | RequestWish, fire: NewFire, row: PlannedFire): Admission {
    const trigger = triggerKey(fire);
    const replacedFire = fire.kind === "cron" ? this.#waitingCron.get(trigger) : undefined;
    if (replacedFire === undefined && this.#waiting >= fire.queueMax) return this.#queueFull(fire, row);
    if (replacedFire === undefined) this.#waiting += 1;
    else this.#replace(replacedFire);
    if (fire.kind === "cron") this.#waitingCron.set(trigger, row.id);
    const queuedFire: PlannedFire = { ...row, status: "queued", reason: "account_session_cap" };
    this.#write(queuedFire);
    const { prompt } = fire;
    const initialPrompt =
      prompt.is === "own" ? session.initialPrompt : prompt.is === "rendered" ? prompt.text : null;
    const place = fire.kind === "cron" ? trigger : row.id;
    const former = this.#queue.get(place);
    const expiresAt = now + fire.queueTtlMs;
    const isLast = replacedFire === undefined && this.#waiting === fire.queueMax;
    this.#queue.set(place, {
      fire: queuedFire,
      session: { ...session, initialPrompt },
      template: prompt.is === "cron" ? storable(prompt.template) : null,
      replaces: former === undefined ? (replacedFire ?? null) : former.replaces,
      fills: isLast ? fire.queueMax : (former?.fills ?? null),
      queuedAt: now,
      expiresAt,
    });
    return { outcome: "queued", fireId: row.id, slotIsFree: this.#slots > 0, expiresAt };
  }

  /** A webhook's sender gets an error and can repeat the delivery. A due instant has no sender, so it gets a row. */
  #queueFull(fire: NewFire, row: PlannedFire): Admission {
    const reason = "queue_full";
    if (fire.kind === "cron") {
      this.#write({ ...row, status: "failed", reason });
      return { outcome: "dropped", fireId: row.id, reason };
    }
    this.#requests.delete(row.id);
    return { outcome: reason, limit: fire.queueMax };
  }

  /** The waiting fire gives its place to a later instant of its trigger. */
  #replace(id: string): void {
    const fire = this.#fires.get(id);
    if (fire === undefined) this.#overlapped.push(id);
    else this.#write({ ...fire, status: "skipped", reason: "overlapped" });
  }
}

/** One answer for each wish, in the same order, and the rows to write. */
export const planAdmissions = (
  facts: AdmissionFacts,
  requests: readonly AdmissionRequest[],
): AdmissionPlan => {
  const planner = new Planner(facts);
  const answers = requests.map((request) => planner.decide(request));
  return planner.plan(answers);
};
