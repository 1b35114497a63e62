/** Violations in rows: changed in a transaction that is never committed, under the service's eyes and without its noticing. */
import { randomUUID } from "node:crypto";
import type { Ground, Plant } from "./plants.ts";
import type { Seen } from "../seen.ts";
import { inSnapshot, readTables } from "../tables.ts";

/** Changes rows as no service would: without foreign keys, and with all that commits would do done. */
const rows =
  (statements: (ground: Ground) => readonly string[]) =>
  async (ground: Ground): Promise<Seen> => {
    const tables = await inSnapshot(ground.service.databaseUrl, async (client) => {
      for (const statement of statements(ground)) await client.query(statement);
      await client.query("SET CONSTRAINTS ALL IMMEDIATE");
      return readTables(client);
    });
    return { ...ground.seen, tables };
  };

/** Foreign keys are triggers too: the witness sleeps with them. */
const UNLINKED = "SET LOCAL session_replication_role = replica";

/** A copy of a row under an id of its own. */
const copyOf = (table: string, id: string, changes: Readonly<Record<string, unknown>> = {}): string =>
  `INSERT INTO ${table} SELECT (jsonb_populate_record(original, '${JSON.stringify({ ...changes, id: randomUUID() })}')).*
   FROM ${table} AS original WHERE id = '${id}'`;

const waiting = (fireId: string, at: number): string =>
  `INSERT INTO fire_queue (fire_id, account_id, project_id, trigger_slug, kind, session, queued_at, expires_at)
   SELECT '${fireId}', account_id, project_id, 'planted', 'webhook', '{}', now(), now() + interval '${at} hours'
   FROM fires LIMIT 1`;

const session =
  (set: string) =>
  ({ ended }: Ground) => [`UPDATE project_sessions SET ${set} WHERE id = '${ended.sessionId}'`];

export const ROW_PLANTS: readonly Plant[] = [
  {
    checker: "counters",
    what: "a slot added to the counter",
    told: "I1 account",
    plant: rows(() => ["UPDATE accounts SET active_sessions = active_sessions + 1"]),
  },
  {
    checker: "counters",
    what: "a waiting fire too many in the counter",
    told: "waiting fires of",
    plant: rows(() => ["UPDATE accounts SET queued_fires = queued_fires + 1"]),
  },
  {
    checker: "counters",
    what: "more live sessions than slots",
    told: "and 0 slots",
    plant: rows(() => ["UPDATE accounts SET session_cap = 0"]),
  },
  {
    checker: "witnessed",
    what: "a commit in which the counter is wrong",
    told: "I1 at a commit",
    plant: rows(() => ["UPDATE accounts SET active_sessions = active_sessions + 1"]),
  },
  {
    checker: "witnessed",
    what: "a session that goes from stopped to running",
    told: "from stopped to running",
    plant: rows(session("status = 'running'")),
  },
  {
    checker: "witnessed",
    what: "a sandbox that ended and is active again",
    told: "from stopped to active",
    plant: rows(({ ended }) => [
      `UPDATE session_sandboxes SET status = 'active', ended_at = NULL WHERE id = '${ended.sandboxId}'`,
    ]),
  },
  {
    checker: "witnessed",
    what: "a fire that overtakes another",
    told: "I13 fire",
    plant: rows(({ fired }) => [
      waiting(randomUUID(), 1),
      waiting(fired.id, 2),
      `DELETE FROM fire_queue WHERE fire_id = '${fired.id}'`,
    ]),
  },
  {
    checker: "witnessed",
    what: "last_fired_at set back",
    told: "I14 last_fired_at",
    plant: rows(() => [
      "UPDATE project_trigger_runtime SET last_fired_at = last_fired_at - interval '1 second'",
    ]),
  },
  {
    checker: "lastFired",
    what: "last_fired_at set forward",
    told: "I14 last_fired_at",
    plant: rows(() => [
      "UPDATE project_trigger_runtime SET last_fired_at = last_fired_at + interval '1 second'",
    ]),
  },
  {
    checker: "instants",
    what: "an instant whose row is deleted",
    told: "has no row",
    plant: rows(({ instant }) => [UNLINKED, `DELETE FROM fires WHERE id = '${instant}'`]),
  },
  {
    checker: "instants",
    what: "an instant with a second row",
    told: "more than one row",
    plant: rows(({ instant }) => ["DROP INDEX fires_instant_key", copyOf("fires", instant)]),
  },
  {
    checker: "causes",
    what: "a fire whose session is deleted",
    told: "its session is missing",
    plant: rows(({ fired }) => [UNLINKED, `DELETE FROM project_sessions WHERE id = '${fired.sessionId}'`]),
  },
  {
    checker: "causes",
    what: "a fire with a second session",
    told: "I2 fire",
    plant: rows(({ fired }) => [
      "DROP INDEX project_sessions_fire_key",
      copyOf("project_sessions", fired.sessionId),
    ]),
  },
  {
    checker: "causes",
    what: "a session whose fire is deleted",
    told: "has no fire that names it",
    plant: rows(({ fired }) => [UNLINKED, `DELETE FROM fires WHERE id = '${fired.id}'`]),
  },
  {
    checker: "causes",
    what: "a fire that waits nowhere",
    told: "its place in the queue says otherwise",
    plant: rows(({ instant }) => [
      `UPDATE fires SET status = 'queued', session_id = NULL, fired_at = NULL WHERE id = '${instant}'`,
    ]),
  },
  {
    checker: "deliveries",
    what: "an accepted webhook whose row is deleted",
    told: "has 0 rows",
    plant: rows(({ fired }) => [UNLINKED, `DELETE FROM fires WHERE id = '${fired.id}'`]),
  },
  {
    checker: "deliveries",
    what: "an accepted webhook with a second row",
    told: "has 2 rows",
    plant: rows(({ fired }) => ["DROP INDEX fires_delivery_key", copyOf("fires", fired.id)]),
  },
  {
    checker: "promises",
    what: "a session that was promised and is deleted",
    told: "was promised",
    plant: rows(({ ended }) => [UNLINKED, `DELETE FROM project_sessions WHERE id = '${ended.sessionId}'`]),
  },
  {
    checker: "promises",
    what: "sessions that no user requested",
    told: "unreported sessions",
    plant: rows(({ ended, seen }) =>
      Array.from({ length: seen.books.asked.length + 1 }, () => copyOf("project_sessions", ended.sessionId)),
    ),
  },
  {
    checker: "answers",
    what: "a stopped session that lives on",
    told: "was stopped and is",
    plant: rows(session("status = 'provisioning'")),
  },
  {
    checker: "answers",
    what: "a deleted session that lives on",
    told: "was deleted and is",
    plant: rows(({ seen: { books } }) => {
      const removed = books.asked.find(({ kind, answer }) => kind === "remove" && answer === 204);
      return [`UPDATE project_sessions SET status = 'provisioning' WHERE id = '${removed?.sessionId}'`];
    }),
  },
  {
    checker: "agreement",
    what: "a row that the API tells otherwise",
    told: "in the API",
    plant: rows(session(`status = 'failed', failure = '{"code":"x","message":"x"}', failed_at = now()`)),
  },
  {
    checker: "agreement",
    what: "a session that the API still lists",
    told: "the API lists",
    plant: rows(session("deleted_at = now()")),
  },
  {
    checker: "unrest",
    what: "a session left in provisioning",
    told: "is still provisioning",
    plant: rows(session("status = 'provisioning'")),
  },
  {
    checker: "unrest",
    what: "a command that is never performed",
    told: "has createBranch left to do",
    plant: rows(({ ended }) => [
      `INSERT INTO outbox (actor_kind, actor_id, command, created_at) VALUES ('session', '${ended.sessionId}', '{"type":"createBranch"}', now())`,
    ]),
  },
  {
    checker: "unrest",
    what: "a free slot beside a fire that waits",
    told: "has a free slot",
    plant: rows(() => ["UPDATE accounts SET session_cap = 100", waiting(randomUUID(), 1)]),
  },
  {
    checker: "reasons",
    what: "a session that failed without a reason",
    told: "failed without a reason",
    plant: rows((ground) => [
      "ALTER TABLE project_sessions DROP CONSTRAINT project_sessions_failed_has_reason",
      ...session("status = 'failed'")(ground),
    ]),
  },
  {
    checker: "reasons",
    what: "a stopped session without a reason",
    told: "stopped without a reason",
    plant: rows(session("stop_reason = NULL")),
  },
  {
    checker: "reasons",
    what: "a fire that was skipped without a reason",
    told: "is skipped without a reason",
    plant: rows(({ instant }) => [
      `UPDATE fires SET status = 'skipped', reason = NULL, session_id = NULL, fired_at = NULL WHERE id = '${instant}'`,
    ]),
  },
  {
    checker: "sandboxes",
    what: "a record that lives on after its session",
    told: "its session stopped",
    plant: rows(({ ended }) => [
      `UPDATE session_sandboxes SET status = 'active', ended_at = NULL WHERE id = '${ended.sandboxId}'`,
    ]),
  },
];
