/**
 * Seals everything in the database with another master key, in one transaction: after a kill, either everything is
 * under the former key or everything is under the new one.
 *
 *  S1 The key's row is locked first, and the nodes are checked after that. A node sends a heartbeat before it reads the
 *     row (master-keys.ts). So either it is seen here, or it waits for this transaction and finds the new key.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import {
  credentialPlace,
  type CredentialHolder,
  type CredentialKind,
} from "../../domain/connector/connector-credential.ts";
import type { GrantKind } from "../../domain/connector/connector.ts";
import { flowPlace, grantPlace } from "../../domain/connector/connector-grant.ts";
import { heldBy } from "./connectors/connectors.ts";
import { toStored } from "./connection/statement.ts";
import { FORMER_KEYS, KEY_CHECK } from "./projects/secrets.ts";

/** The columns with sealed values of the core. */
export const SEALED_COLUMNS = [
  "connector_credentials.envelope",
  "connector_flows.envelope",
  "connector_grants.envelope",
  "project_credentials.envelope",
  "project_secrets.envelope",
  "project_secrets.previous_envelope",
] as const;

/** How many values are read at a time: 64 KiB each at most. */
const PORTION = 100;

export interface SealedRow {
  readonly projectId: string;
  /** Null for a repository's credential. */
  readonly name: string | null;
  readonly version: number;
  readonly envelope: Uint8Array;
}

export interface KeyFacts {
  readonly check: string | null;
  readonly former: string | null;
  /** Nodes that sent a heartbeat since the given instant. */
  readonly nodes: readonly string[];
  /** Ids of the oldest running sandbox, and of the newest of all. */
  readonly oldestLive: string | null;
  readonly newest: string | null;
}

export interface Resealing<E> {
  /** Nodes that were seen later than this are alive; ms since the epoch. */
  readonly aliveSince: number;
  /** Decides on the current state, before anything is changed. @returns the key records to store */
  readonly decide: (keys: KeyFacts) => Effect.Effect<{ readonly check: string; readonly former: string }, E>;
  readonly reseal: (row: SealedRow) => Effect.Effect<Uint8Array, E>;
  /** Performed before the commit. */
  readonly written: () => void;
}

const look = Effect.fnUntraced(function* (aliveSince: number) {
  const sql = yield* SqlClient.SqlClient;
  const rows = yield* sql<{ readonly key: string; readonly value: string }>`
    SELECT key, value FROM settings WHERE key IN (${KEY_CHECK}, ${FORMER_KEYS}) FOR UPDATE`;
  const nodes = yield* sql<{ readonly id: string }>`
    SELECT id FROM nodes WHERE dead_at IS NULL AND last_seen_at > ${new Date(aliveSince)} ORDER BY id`;
  const [sandboxes] = yield* sql<Pick<KeyFacts, "oldestLive" | "newest">>`
    SELECT min(id::text) FILTER (WHERE status IN ('provisioning', 'active')) AS "oldestLive", max(id::text) AS newest
    FROM session_sandboxes`;
  const readValue = (name: string) => rows.find(({ key }) => key === name)?.value ?? null;
  return {
    check: readValue(KEY_CHECK),
    former: readValue(FORMER_KEYS),
    nodes: nodes.map(({ id }) => id),
    oldestLive: sandboxes?.oldestLive ?? null,
    newest: sandboxes?.newest ?? null,
  } satisfies KeyFacts;
});

const keep = Effect.fnUntraced(function* (values: { readonly check: string; readonly former: string }) {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`UPDATE settings SET value = ${values.check} WHERE key = ${KEY_CHECK}`;
  yield* sql`
    INSERT INTO settings (key, value) VALUES (${FORMER_KEYS}, ${values.former})
    ON CONFLICT (key) DO UPDATE SET value = excluded.value`;
});

/** A secret with its previous value, which may still verify webhooks. */
interface SecretRow extends SealedRow {
  readonly name: string;
  readonly previousVersion: number | null;
  readonly previousEnvelope: Uint8Array | null;
}

const secrets = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  let after: SecretRow | null = null;
  let count = 0;
  for (;;) {
    const rows: readonly SecretRow[] = yield* sql<SecretRow>`
      SELECT project_id AS "projectId", name, version, envelope, previous_version AS "previousVersion",
        previous_envelope AS "previousEnvelope"
      FROM project_secrets
      WHERE envelope IS NOT NULL AND (project_id, name) > (${after?.projectId ?? NO_ID}::uuid, ${after?.name ?? ""})
      ORDER BY project_id, name LIMIT ${PORTION} FOR UPDATE`;
    for (const row of rows) {
      const envelope = Buffer.from(yield* reseal(row));
      const previous = previousSecret(row);
      const previousEnvelope = previous === null ? null : Buffer.from(yield* reseal(previous));
      yield* sql`
        UPDATE project_secrets SET envelope = ${envelope}, previous_envelope = ${previousEnvelope}
        WHERE project_id = ${row.projectId} AND name = ${row.name}`;
    }
    count += rows.length;
    after = rows.at(-1) ?? null;
    if (after === null) return count;
  }
});

const previousSecret = ({
  projectId,
  name,
  previousVersion,
  previousEnvelope,
}: SecretRow): SealedRow | null =>
  previousVersion === null || previousEnvelope === null
    ? null
    : { projectId, name, version: previousVersion, envelope: previousEnvelope };

/** Sorts before every other id. */
export const NO_ID = "00000000-0000-0000-0000-000000000000";

/** Rows with an id and one envelope each. They are sealed with the owner as their project. Rows without both are left alone. */
interface SealedTable {
  readonly table: string;
  readonly owner: "project_id" | "account_id" | "user_id";
  /** The beginning of the name under which a row is sealed. Its id follows. */
  readonly before: string;
}

/** Seals the rows of a feature's table. @returns how many */
export const resealRows = ({ table, owner, before }: SealedTable) =>
  Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
    const sql = yield* SqlClient.SqlClient;
    let after = NO_ID;
    let count = 0;
    for (;;) {
      const rows = yield* sql<SealedRow & { readonly id: string }>`
        SELECT id, ${sql(owner)} AS "projectId", ${before} || id::text AS name, sealed_version AS version, envelope
        FROM ${sql(table)} WHERE id > ${after}::uuid AND ${sql(owner)} IS NOT NULL AND envelope IS NOT NULL ORDER BY id LIMIT ${PORTION} FOR UPDATE`;
      for (const row of rows) {
        const envelope = Buffer.from(yield* reseal(row));
        yield* sql`UPDATE ${sql(table)} SET envelope = ${envelope} WHERE id = ${row.id}`;
      }
      count += rows.length;
      const last = rows.at(-1);
      if (last === undefined) return count;
      after = last.id;
    }
  });

const credentials = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  const rows = yield* sql<SealedRow>`
    SELECT project_id AS "projectId", NULL AS name, 1 AS version, envelope FROM project_credentials FOR UPDATE`;
  for (const row of rows) {
    const envelope = Buffer.from(yield* reseal(row));
    yield* sql`UPDATE project_credentials SET envelope = ${envelope} WHERE project_id = ${row.projectId}`;
  }
  return rows.length;
});

type ConnectorRow = Omit<SealedRow, "name"> & CredentialHolder & { readonly origin: string };

const connectorCredentials = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  const rows = yield* sql<ConnectorRow & { readonly kind: CredentialKind }>`
    SELECT project_id AS "projectId", slug, person_id AS "personId", origin, kind, version, envelope
    FROM connector_credentials
    WHERE envelope IS NOT NULL FOR UPDATE`;
  for (const row of rows) {
    const envelope = Buffer.from(yield* reseal({ ...row, ...credentialPlace(row) }));
    yield* sql`
      UPDATE connector_credentials SET envelope = ${envelope} WHERE ${heldBy(sql, row)}`;
  }
  return rows.length;
});

/** Tokens of connectors, and sign-ins that are under way. @returns how many tokens */
const connectorGrants = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  const grants = yield* sql<ConnectorRow & { readonly kind: GrantKind }>`
    SELECT project_id AS "projectId", slug, person_id AS "personId", origin, kind, version, envelope
    FROM connector_grants
    WHERE envelope IS NOT NULL FOR UPDATE`;
  for (const row of grants) {
    const envelope = Buffer.from(yield* reseal({ ...row, ...grantPlace(row) }));
    yield* sql`
      UPDATE connector_grants SET envelope = ${envelope} WHERE ${heldBy(sql, row)}`;
  }
  const flows = yield* sql<Omit<ConnectorRow, "personId"> & { readonly stateHash: string }>`
    SELECT project_id AS "projectId", slug, origin, state_hash AS "stateHash", 1 AS version, envelope
    FROM connector_flows FOR UPDATE`;
  for (const row of flows) {
    const envelope = Buffer.from(yield* reseal({ ...row, ...flowPlace(row) }));
    yield* sql`UPDATE connector_flows SET envelope = ${envelope} WHERE state_hash = ${row.stateHash}`;
  }
  return grants.length;
});

/**
 * @param features seals what features keep
 * @returns how many values it sealed, by kind
 */
export const resealAll = Effect.fn("store.resealAll")(function* <E, Counts extends object>(
  work: Resealing<E>,
  features: (reseal: Resealing<E>["reseal"]) => Effect.Effect<Counts, E | SqlError, SqlClient.SqlClient>,
) {
  const sql = yield* SqlClient.SqlClient;
  const all = Effect.gen(function* () {
    const masterKey = yield* work.decide(yield* look(work.aliveSince));
    const counts = {
      secrets: yield* secrets(work.reseal),
      credentials: yield* credentials(work.reseal),
      connectorCredentials: yield* connectorCredentials(work.reseal),
      connectorGrants: yield* connectorGrants(work.reseal),
      ...(yield* features(work.reseal)),
    };
    yield* keep(masterKey);
    work.written();
    return counts;
  });
  return yield* sql.withTransaction(all).pipe(toStored("reseal.all"));
});
