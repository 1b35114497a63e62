/** Grants of connectors, which arrive sealed, and sign-ins that are under way. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { CredentialHolder } from "../../../domain/connector/connector-credential.ts";
import {
  ConnectorGrants,
  type Flow,
  type GrantKey,
  type StoredGrant,
} from "../../ports/connectors/connector-grants.ts";
import { Fenced } from "../../ports/journal.ts";
import { heldBy } from "./connectors.ts";
import { makeLiveToken } from "../people/callers.ts";
import { at, toStored } from "../connection/statement.ts";

type Service = (typeof ConnectorGrants)["Service"];

const COLUMNS = `
  project_id AS "projectId", slug, person_id AS "personId", version, origin, kind, status, envelope, issuer, expires_at AS "expiresAt",
  granted_at AS "grantedAt", granted_by AS "grantedBy", renewed_at AS "renewedAt", failure, failed_at AS "failedAt"`;

const FLOW_COLUMNS = `project_id AS "projectId", slug, user_id AS "userId", is_own AS "isOwn", origin, state_hash AS "stateHash", envelope`;

const buffer = (bytes: Uint8Array | null): Buffer | null => (bytes === null ? null : Buffer.from(bytes));

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  return {
    list: (projectId, personId) =>
      sql<StoredGrant>`
        SELECT ${columns} FROM connector_grants
        WHERE project_id = ${projectId} AND (person_id IS NULL OR person_id = ${personId}) AND status <> 'removed'
        ORDER BY slug COLLATE "C", person_id NULLS FIRST`.pipe(toStored("connectorGrants.list")),
    get: (holder) =>
      sql<StoredGrant>`SELECT ${columns} FROM connector_grants WHERE ${heldBy(sql, holder)}`.pipe(
        Effect.map(([row]) => row ?? null),
        toStored("connectorGrants.get"),
      ),
    left: sql<CredentialHolder>`
      SELECT project_id AS "projectId", slug, person_id AS "personId" FROM connector_grants
      JOIN users ON users.id = person_id AND users.deactivated_at IS NOT NULL
      WHERE person_id IS NOT NULL AND status <> 'removed' LIMIT 100`.pipe(toStored("connectorGrants.left")),
  } satisfies Partial<Service>;
});

const makeWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  const put: Service["put"] = (grant, { userId, now }) => {
    const { projectId, slug, personId, version, origin, kind, envelope, issuer, expiresAt } = grant;
    // Of two writes of one version, the second finds the first one's row and changes nothing.
    return sql<{ readonly slug: string }>`
      INSERT INTO connector_grants AS known (project_id, slug, person_id, version, origin, kind, status, envelope, issuer,
        expires_at, granted_at, granted_by)
      SELECT ${projectId}, ${slug}, ${personId}::uuid, ${version}::integer, ${origin}, ${kind},
        ${envelope === null ? "empty" : "held"}, ${buffer(envelope)}, ${issuer}, ${at(expiresAt)}::timestamptz,
        ${at(now)}::timestamptz, ${userId}::uuid
      WHERE ${version}::integer = 1 OR EXISTS (SELECT FROM connector_grants WHERE ${heldBy(sql, grant)})
      ON CONFLICT (project_id, slug, person_id) DO UPDATE SET
        version = excluded.version, origin = excluded.origin, kind = excluded.kind, status = excluded.status,
        envelope = excluded.envelope, issuer = excluded.issuer, expires_at = excluded.expires_at,
        granted_at = excluded.granted_at, granted_by = excluded.granted_by, renewed_at = NULL, failure = NULL,
        failed_at = NULL, lease_holder = NULL, lease_until = NULL
      WHERE known.version = excluded.version - 1
      RETURNING slug`.pipe(
      Effect.flatMap(([row]) => (row === undefined ? Effect.fail(new Fenced({ id: slug })) : Effect.void)),
      toStored("connectorGrants.put"),
    );
  };
  const remove: Service["remove"] = (holder, now) =>
    sql<StoredGrant>`
      WITH former AS (
        SELECT ${columns} FROM connector_grants
        WHERE ${heldBy(sql, holder)} AND status <> 'removed' FOR UPDATE
      ), removed AS (
        UPDATE connector_grants SET version = version + 1, status = 'removed', envelope = NULL, granted_at = ${at(now)},
          failure = NULL, failed_at = NULL, lease_holder = NULL, lease_until = NULL
        WHERE ${heldBy(sql, holder)} AND EXISTS (SELECT FROM former)
      )
      SELECT * FROM former`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("connectorGrants.remove"),
    );
  return { put, remove } satisfies Partial<Service>;
});

const makeLeases = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  /** The rows of this version. */
  const ofVersion = (key: GrantKey) => sql`${heldBy(sql, key)} AND version = ${key.version}`;
  const lease: Service["lease"] = (key, { holder, now, until, failedAt }) =>
    Effect.gen(function* () {
      const [leased] = yield* sql`
        UPDATE connector_grants SET lease_holder = ${holder}, lease_until = ${at(until)}
        WHERE ${ofVersion(key)} AND status IN ('empty', 'held') AND (lease_until IS NULL OR lease_until <= ${at(now)})
          AND failed_at IS NOT DISTINCT FROM ${at(failedAt)}
        RETURNING slug`;
      if (leased !== undefined) return "leased" as const;
      const [held] = yield* sql`
        SELECT slug FROM connector_grants WHERE ${ofVersion(key)} AND status IN ('empty', 'held')`;
      return held === undefined ? ("changed" as const) : ("held" as const);
    }).pipe(toStored("connectorGrants.lease"));
  const renew: Service["renew"] = ({ envelope, issuer, expiresAt, ...grant }, { holder, now }) =>
    sql<{ readonly slug: string }>`
      UPDATE connector_grants SET version = version + 1, status = 'held', envelope = ${buffer(envelope)},
        issuer = ${issuer}, expires_at = ${at(expiresAt)}, renewed_at = ${at(now)}, failure = NULL, failed_at = NULL,
        lease_holder = NULL, lease_until = NULL
      WHERE ${ofVersion({ ...grant, version: grant.version - 1 })} AND lease_holder = ${holder}
        AND origin = ${grant.origin} AND kind = ${grant.kind}
      RETURNING slug`.pipe(
      Effect.map((rows) => rows.length > 0),
      toStored("connectorGrants.renew"),
    );
  const fail: Service["fail"] = (key, { holder, now, failure, isRefused }) =>
    sql<{ readonly slug: string }>`
      UPDATE connector_grants SET failure = ${failure}, failed_at = ${at(now)}, lease_holder = NULL, lease_until = NULL,
        version = CASE WHEN ${isRefused} THEN version + 1 ELSE version END,
        status = CASE WHEN ${isRefused} THEN 'refused' ELSE status END,
        envelope = CASE WHEN ${isRefused} THEN NULL ELSE envelope END
      WHERE ${ofVersion(key)} AND lease_holder = ${holder} RETURNING slug`.pipe(
      Effect.map((rows) => rows.length > 0),
      toStored("connectorGrants.fail"),
    );
  return { lease, renew, fail } satisfies Partial<Service>;
});

const makeFlows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const liveToken = yield* makeLiveToken;
  const columns = sql.literal(FLOW_COLUMNS);
  const begin: Service["begin"] = (flow) =>
    Effect.gen(function* () {
      const { projectId, slug, userId, isOwn, origin, ticketHash, stateHash, envelope, expiresAt, now } =
        flow;
      yield* sql`DELETE FROM connector_flows WHERE expires_at <= ${at(now)}`;
      yield* sql`
        INSERT INTO connector_flows (project_id, slug, user_id, is_own, origin, ticket_hash, state_hash, envelope,
          expires_at)
        VALUES (${projectId}, ${slug}, ${userId}, ${isOwn}, ${origin}, ${ticketHash}, ${stateHash},
          ${Buffer.from(envelope)}, ${at(expiresAt)})
        ON CONFLICT (project_id, slug, user_id) DO UPDATE SET
          is_own = excluded.is_own, origin = excluded.origin, ticket_hash = excluded.ticket_hash, state_hash = excluded.state_hash,
          browser_hash = NULL, envelope = excluded.envelope, expires_at = excluded.expires_at`;
    }).pipe(toStored("connectorGrants.begin"));
  const open: Service["open"] = ({ ticketHash, userId, browserId, browserHash, now }) =>
    sql<Flow>`
      UPDATE connector_flows SET browser_hash = ${browserHash}, opened_in = ${browserId}
      WHERE ticket_hash = ${ticketHash} AND user_id = ${userId} AND browser_hash IS NULL AND expires_at > ${at(now)}
      RETURNING ${columns}`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("connectorGrants.open"),
    );
  const take: Service["take"] = ({ stateHash, browserHash, now }) =>
    sql<Flow>`
      DELETE FROM connector_flows
      WHERE state_hash = ${stateHash} AND browser_hash = ${browserHash} AND expires_at > ${at(now)}
        AND (opened_in IS NULL OR EXISTS (${liveToken(sql.literal("opened_in"), now)}))
      RETURNING ${columns}`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("connectorGrants.take"),
    );
  return { begin, open, take } satisfies Partial<Service>;
});

export const layer = Layer.effect(
  ConnectorGrants,
  Effect.gen(function* () {
    return {
      ...(yield* makeReads),
      ...(yield* makeWrites),
      ...(yield* makeLeases),
      ...(yield* makeFlows),
    };
  }),
);
