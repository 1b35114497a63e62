/**
 * The short way of an admission: one statement, where looking first takes a transaction of six round trips. A batch is
 * decided by how the last decision of this process left the account and by the versions that its wishes themselves went
 * by; the statement is fenced by just these, so a guess that does not hold writes nothing, and the batch is decided under
 * the account's lock.
 *
 *  G1 What is remembered is never believed. The counters are compared in the update that moves them, the projects'
 *     versions in its condition.
 *  G2 A delivery is guessed to be new. One that is not is refused by the ledger's unique index, and the statement with it.
 *  G3 What cannot be fenced is not guessed: cron fires (who waits, when a trigger last fired), wishes that name no version,
 *     a batch that would write nothing, whose answers would rest on nothing, and a delivery that would leave no row: the
 *     index cannot tell that the ledger has it.
 */
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { identityOf, type AdmissionFacts, type AdmissionPlan } from "../admission/plan.ts";
import type { AdmissionRequest } from "../ports/admissions.ts";
import type { CounterMove } from "./slots.ts";
import { violatedConstraint } from "./connection/errors.ts";

/** The counters of an account that an admission goes by. */
type Counters = Pick<AdmissionFacts, "cap" | "activeSessions" | "waiting">;

/** As many accounts as one node is likely to fire for in a minute; the one that was noted first is forgotten. */
const REMEMBERED_MAX = 10_000;

const DELIVERY_INDEX = "fires_delivery_key";

export class Guesses {
  readonly #left = new Map<string, Counters>();

  /** Remembers how a decision by `facts` that moved the counters leaves the account. */
  note(accountId: string, facts: Counters, move: CounterMove): void {
    this.#left.delete(accountId);
    this.#left.set(accountId, {
      cap: facts.cap,
      activeSessions: facts.activeSessions + move.sessions,
      waiting: facts.waiting + move.queued,
    });
    const [first] = this.#left.keys();
    if (this.#left.size > REMEMBERED_MAX && first !== undefined) this.#left.delete(first);
  }

  /** What the batch may be decided by; null: it must be looked at first (G3). */
  factsFor(accountId: string, requests: readonly AdmissionRequest[]): AdmissionFacts | null {
    const counters = this.#left.get(accountId);
    const activeProjects = versionsOf(requests);
    if (counters === undefined || activeProjects === null) return null;
    if (requests.some(({ fire }) => fire?.kind === "cron")) return null;
    return { ...counters, activeProjects, known: [], lastFired: new Map(), waitingCron: [] };
  }
}

/** G3: whether the plan turns a delivery away without a row. It may be one that has its answer. */
export const leavesDeliveryOut = (requests: readonly AdmissionRequest[], plan: AdmissionPlan): boolean => {
  const written = new Set(plan.fires.map(({ id }) => id));
  return requests.some(({ fire }) => fire !== null && identityOf(fire) !== null && !written.has(fire.id));
};

/** The version that all wishes of a project went by; null where they do not agree on one. */
const versionsOf = (requests: readonly AdmissionRequest[]): ReadonlyMap<string, number> | null => {
  const versions = new Map<string, number>();
  for (const { session, projectVersion } of requests) {
    if (projectVersion === null) return null;
    if ((versions.get(session.projectId) ?? projectVersion) !== projectVersion) return null;
    versions.set(session.projectId, projectVersion);
  }
  return versions;
};

/** G1, as a condition on the account's row. */
export const holds = (sql: SqlClient, accountId: string, facts: AdmissionFacts) => {
  const [ids, versions] = [[...facts.activeProjects.keys()], [...facts.activeProjects.values()]];
  return sql`
    AND session_cap = ${facts.cap} AND active_sessions = ${facts.activeSessions}
    AND queued_fires = ${facts.waiting}
    AND NOT EXISTS (
      SELECT FROM unnest(${ids}::uuid[], ${versions}::bigint[]) AS expected (id, version)
      WHERE NOT EXISTS (
        SELECT FROM projects WHERE projects.id = expected.id AND projects.version = expected.version
          AND projects.account_id = ${accountId} AND projects.status = 'active'))`;
};

/** G2: whether the statement failed for a delivery that the ledger has. */
export const isKnownDelivery = (error: SqlError): boolean => violatedConstraint(error) === DELIVERY_INDEX;
