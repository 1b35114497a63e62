/**
 * The fast path of an admission: one statement instead of a transaction with six round trips. A batch is decided on two
 * guesses: the account as this process's last decision left it, and the project versions that the requests name. The
 * statement is fenced by both. If a guess is wrong, nothing is written, and the batch is decided under the account's
 * lock.
 *
 *  G1 Remembered values never decide. The update that moves the counters compares them, and its condition checks the
 *     projects' versions.
 *  G2 A delivery is guessed to be new. If it is not, the ledger's unique index refuses it, and the whole statement
 *     fails.
 *  G3 Facts that no fence can check are not guessed: cron fires (they depend on waiting fires and the trigger's last
 *     fire), requests without a version, a batch that writes nothing (its answers would be unchecked), and a delivery
 *     that leaves no row (the index cannot check it).
 */
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { BoundedMap } from "../../../ground/bounded-map.ts";
import { newIdentity, type AdmissionFacts, type AdmissionPlan } from "../../admission/plan.ts";
import type { AdmissionRequest } from "../../ports/triggers/admissions.ts";
import type { CounterMove } from "./slots.ts";
import { violatedConstraint } from "../connection/errors.ts";

/** The counters of an account on which an admission depends. */
type Counters = Pick<AdmissionFacts, "cap" | "activeSessions" | "waiting">;

/**
 * About the number of accounts for which one node fires in a minute. Beyond that, the earliest noted one is forgotten.
 */
const REMEMBERED_MAX = 10_000;

const DELIVERY_INDEX = "fires_delivery_key";

export class Guesses {
  readonly #left = new BoundedMap<string, Counters>(REMEMBERED_MAX);

  /** Remembers how a decision on `facts` that moved the counters leaves the account. */
  note(accountId: string, facts: Counters, move: CounterMove): void {
    this.#left.set(accountId, {
      cap: facts.cap,
      activeSessions: facts.activeSessions + move.sessions,
      waiting: facts.waiting + move.queued,
    });
  }

  /** The facts on which the batch may be decided. Null if they must be read first (G3). */
  factsFor(accountId: string, requests: readonly AdmissionRequest[]): AdmissionFacts | null {
    const counters = this.#left.get(accountId);
    const activeProjects = readVersions(requests);
    if (counters === undefined || activeProjects === null) return null;
    if (requests.some(({ fire }) => fire?.kind === "cron")) return null;
    // The live children of a session are not remembered.
    if (requests.some(({ session }) => session.parentSessionId !== undefined)) return null;
    return {
      ...counters,
      activeProjects,
      liveChildren: new Map(),
      known: [],
      lost: new Set(),
      lastFired: new Map(),
      waitingCron: [],
    };
  }
}

/** G3: whether the plan refuses a delivery without a row. The ledger may already hold its answer. */
export const leavesDeliveryOut = (requests: readonly AdmissionRequest[], plan: AdmissionPlan): boolean => {
  const writtenIds = new Set(plan.fires.map(({ id }) => id));
  return requests.some(({ fire }) => fire !== null && newIdentity(fire) !== null && !writtenIds.has(fire.id));
};

/** The version that all requests of a project name. Null if they differ. */
const readVersions = (requests: readonly AdmissionRequest[]): ReadonlyMap<string, number> | null => {
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

/** G2: whether the statement failed for a delivery that is already in the ledger. */
export const isKnownDelivery = (error: SqlError): boolean => violatedConstraint(error) === DELIVERY_INDEX;
