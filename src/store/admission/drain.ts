/**
 * The outcomes of waiting fires that a slot is free for (api.md 4 "Queue"). Pure, and shared by both adapters. They choose which fires
 * these are and in which order: `queueInOrder` (postgres/triggers/fires.ts).
 */
import * as Result from "effect/Result";
import { requireWaits } from "../../domain/trigger/fire.ts";
import { POWERS, PRIVILEGES } from "../../domain/person/privileges.ts";
import { type PersonNow, whyLapsed } from "../../domain/person/role.ts";
import type { CronTemplate } from "../../domain/trigger/prompt.ts";
import type { Fire } from "../ports/triggers/fires.ts";
import type { NewSession } from "../ports/sessions/sessions.ts";
import { promptedSession, triggerKey, type PlannedFire, type PlannedSession } from "./plan.ts";

/** A waiting fire that a slot is free for. */
export interface DrainedFire {
  readonly fire: Fire;
  readonly session: Omit<NewSession, "bootDeadlineAt">;
  readonly template: CronTemplate | null;
  /** Who asked for the session. Null if a trigger did. */
  readonly person: PersonNow | null;
}
/** The lowest role that may start a session. */
const STARTER_ROLE = POWERS[PRIVILEGES.start_session.power].role;
export interface DrainRequest {
  /** The ids of triggers' sessions. A person's request has the id of its session. */
  readonly sessionIds: readonly string[];
  readonly now: number;
  readonly bootTimeoutMs: number;
}

/**
 * What becomes of waiting fires in the order in which they start: sessions, or rows that say why not, as by a prompt that
 * has outgrown its limit, or because the person who asked may start no sessions any more. `lastFired` as in `AdmissionFacts`.
 */
export const planDrain = (
  accountId: string,
  fires: readonly DrainedFire[],
  { lastFired, request }: { readonly lastFired: ReadonlyMap<string, number>; readonly request: DrainRequest },
) => {
  const { sessionIds, now, bootTimeoutMs } = request;
  const lastFires = new Map(lastFired);
  const sessions: PlannedSession[] = [];
  const rows: PlannedFire[] = [];
  const admissions: { readonly fireId: string; readonly sessionId: string }[] = [];
  for (const [index, { fire, session, template, person }] of fires.entries()) {
    const id = fire.kind === "session" ? session.id : (sessionIds[index] ?? "");
    const trigger = triggerKey(fire);
    // A moved row keeps what it answers for.
    const row = { ...fire, accountId, answersDelivery: false, decidedAt: now };
    const lapse = person === null ? null : whyLapsed(person, STARTER_ROLE);
    if (lapse !== null) {
      requireWaits(fire.status, "cancelled");
      rows.push({ ...row, status: "cancelled", reason: lapse, firedAt: null });
      continue;
    }
    const prompt = template === null ? ({ is: "own" } as const) : ({ is: "cron", template } as const);
    const draft: NewSession = { ...session, id, bootDeadlineAt: now + bootTimeoutMs };
    const promptResult = promptedSession(draft, prompt, lastFires.get(trigger) ?? null);
    const next = Result.isFailure(promptResult) ? "failed" : "fired";
    requireWaits(fire.status, next);
    if (Result.isFailure(promptResult)) {
      rows.push({ ...row, status: next, reason: promptResult.failure, firedAt: null });
    } else {
      sessions.push({ session: promptResult.success, fireId: fire.id, now });
      rows.push({ ...row, status: next, reason: null, sessionId: id, firedAt: now });
      admissions.push({ fireId: fire.id, sessionId: id });
      lastFires.set(trigger, Math.max(lastFires.get(trigger) ?? now, now));
    }
  }
  return { sessions, rows, admitted: admissions };
};
