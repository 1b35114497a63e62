/** What the database holds, read in one snapshot from outside the service. Instants are ms since the epoch. */
import { setTimeout as delay } from "node:timers/promises";
import { connectBare, type Bare } from "../support/postgres/bare.ts";
import { WAIT_MS } from "../support/patience.ts";

export interface AccountRow {
  readonly id: string;
  readonly active: number;
  readonly queued: number;
  readonly cap: number;
}

export interface SessionRow {
  readonly id: string;
  readonly projectId: string;
  readonly accountId: string;
  readonly status: string;
  readonly baseCommit: string | null;
  readonly fireId: string | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly stopReason: string | null;
  readonly saved: { readonly wip: string | null; readonly error: string | null } | null;
  readonly deleted: boolean;
}

export interface SandboxRow {
  readonly id: string;
  readonly sessionId: string;
  readonly nodeId: string;
  readonly status: string;
}

export interface FireRow {
  readonly id: string;
  readonly projectId: string;
  readonly slug: string;
  readonly kind: string;
  readonly status: string;
  readonly reason: string | null;
  readonly scheduledFor: number | null;
  readonly firedAt: number | null;
  readonly deliveryId: string | null;
  readonly sessionId: string | null;
  readonly replayOf: string | null;
}

export interface Tables {
  readonly accounts: readonly AccountRow[];
  readonly sessions: readonly SessionRow[];
  readonly sandboxes: readonly SandboxRow[];
  readonly fires: readonly FireRow[];
  readonly queue: readonly { readonly fireId: string; readonly accountId: string }[];
  readonly outbox: readonly { readonly actorId: string; readonly kind: string; readonly command: string }[];
  readonly lastFired: readonly { readonly projectId: string; readonly slug: string; readonly at: number }[];
  readonly merges: readonly {
    readonly projectId: string;
    readonly head: string;
    readonly commit: string | null;
  }[];
  readonly projects: readonly { readonly id: string; readonly branch: string }[];
  readonly sightings: readonly string[];
}

const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;

/** Reads all of it; the caller's transaction makes it one snapshot. */
export const readTables = async (client: Bare): Promise<Tables> => {
  const rows = async <A>(text: string): Promise<A[]> => [...(await client.query<A>(text)).rows];
  return {
    accounts: await rows(
      `SELECT id, active_sessions AS active, queued_fires AS queued, session_cap AS cap FROM accounts`,
    ),
    sessions: await rows(
      `SELECT id, project_id AS "projectId", account_id AS "accountId", status, base_commit AS "baseCommit",
         fire_id AS "fireId", failure, stop_reason AS "stopReason", saved, deleted_at IS NOT NULL AS deleted
       FROM project_sessions`,
    ),
    sandboxes: await rows(
      `SELECT id, session_id AS "sessionId", node_id AS "nodeId", status FROM session_sandboxes`,
    ),
    fires: await rows(
      `SELECT id, project_id AS "projectId", trigger_slug AS slug, kind, status, reason,
         ${ms("scheduled_for")} AS "scheduledFor", ${ms("fired_at")} AS "firedAt", delivery_id AS "deliveryId",
         session_id AS "sessionId", replay_of AS "replayOf" FROM fires`,
    ),
    queue: await rows(`SELECT fire_id AS "fireId", account_id AS "accountId" FROM fire_queue`),
    outbox: await rows(
      `SELECT actor_id AS "actorId", actor_kind AS kind, command ->> 'type' AS command FROM outbox`,
    ),
    lastFired: await rows(
      `SELECT project_id AS "projectId", slug, ${ms("last_fired_at")} AS at FROM project_trigger_runtime`,
    ),
    merges: await rows(
      `SELECT project_id AS "projectId", head_commit AS head, merged_commit AS commit FROM change_requests
       WHERE head_commit IS NOT NULL`,
    ),
    projects: await rows(`SELECT id, default_branch AS branch FROM projects`),
    sightings: (
      await rows<{ readonly what: string }>(`SELECT what FROM witness.sightings ORDER BY id LIMIT 20`)
    ).map(({ what }) => what),
  };
};

/** A server that is going down, starting up, or not there: it is asked again (class 57P, or no connection at all). */
const isAway = (error: unknown): boolean =>
  error instanceof Error &&
  (("code" in error && /^57P|^ECONN|^ENOENT|^EPIPE/.test(String(error.code))) ||
    error.message.startsWith("Connection closed"));

const AWAY_MS = WAIT_MS;
const AGAIN_MS = 100;

/** Runs `use` on a connection of its own; all of it again where the server was away. */
const connected = async <A>(url: string, use: (client: Bare) => Promise<A>): Promise<A> => {
  for (let waited = 0; ; waited += AGAIN_MS) {
    let client: Bare | null = null;
    try {
      client = await connectBare(url, "real-faults");
      return await use(client);
    } catch (error) {
      if (!isAway(error) || waited >= AWAY_MS) throw error;
    } finally {
      await client?.end();
    }
    await delay(AGAIN_MS);
  }
};

/** Runs `use` in one transaction that is rolled back: a violation that is planted in it is gone afterwards. */
export const inSnapshot = <A>(url: string, use: (client: Bare) => Promise<A>): Promise<A> =>
  connected(url, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    return use(client);
  });

/** Runs statements and commits them. */
export const execute = (url: string, ...statements: readonly string[]): Promise<void> =>
  connected(url, async (client) => {
    for (const statement of statements) await client.query(statement);
  });

/** A whole segment of the server's log holds sixteen of them. */
const LOGGED_BYTES = 1_000_000;

const DISK_FULL = "53100";

/** Writes into the server's own log until it has no space left: every later commit fails in the same way. */
export const exhaustLog = (url: string): Promise<void> =>
  connected(url, async (client) => {
    for (;;) {
      try {
        await client.query(`SELECT pg_logical_emit_message(true, '', repeat('x', ${LOGGED_BYTES}))::text`);
      } catch (error) {
        const isFull = error instanceof Error && "code" in error && error.code === DISK_FULL;
        // It may have ended in a panic, and is not waited for.
        if (isFull || isAway(error)) return;
        throw error;
      }
    }
  });
