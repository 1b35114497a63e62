/** Credentials of connectors, which arrive sealed, and the catalogues of their servers. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Catalogue } from "../../../domain/connector/catalogue.ts";
import type { CredentialHolder } from "../../../domain/connector/connector-credential.ts";
import {
  Connectors,
  type AcceptedCatalogue,
  type SealedCredential,
  type SeenCatalogue,
  type StoredCatalogue,
  type StoredCredential,
} from "../../ports/connectors/connectors.ts";
import { Fenced } from "../../ports/journal.ts";
import { CatalogueTexts, type Mark } from "./catalogue-texts.ts";
import { Waiting } from "../../waiting.ts";
import { makeSignal } from "../connection/signals.ts";
import { at, jsonb, toStored } from "../connection/statement.ts";

type Service = (typeof Connectors)["Service"];

interface SmallRow extends Pick<StoredCatalogue, "slug" | "url" | "failure" | "triedAt"> {
  readonly latestPin: string | null;
  readonly latestAt: number | null;
  readonly protocol: string | null;
  readonly acceptedPin: string | null;
  readonly acceptedAt: number | null;
  readonly acceptedBy: string | null;
}

interface CatalogueRow extends SmallRow {
  readonly latest: string | null;
  readonly accepted: string | null;
}

const SMALL_COLUMNS = `
  slug, url, failure, tried_at AS "triedAt", protocol, latest_pin AS "latestPin", latest_at AS "latestAt",
  accepted_pin AS "acceptedPin", accepted_at AS "acceptedAt", accepted_by AS "acceptedBy"`;

interface Both {
  readonly latest: Catalogue | null;
  readonly accepted: Catalogue | null;
}

const latestCatalogue = (
  { latestPin, latestAt, protocol }: SmallRow,
  { latest }: Both,
): SeenCatalogue | null =>
  latest === null || latestPin === null || latestAt === null || protocol === null
    ? null
    : { catalogue: latest, pin: latestPin, at: latestAt, protocol };

const acceptedCatalogue = (row: SmallRow, { accepted }: Both): AcceptedCatalogue | null => {
  const { acceptedPin, acceptedAt, acceptedBy } = row;
  return accepted === null || acceptedPin === null || acceptedAt === null || acceptedBy === null
    ? null
    : { catalogue: accepted, pin: acceptedPin, at: acceptedAt, by: acceptedBy };
};

const toStoredCatalogue = (row: SmallRow, both: Both): StoredCatalogue => ({
  slug: row.slug,
  url: row.url,
  failure: row.failure,
  triedAt: row.triedAt,
  latest: latestCatalogue(row, both),
  accepted: acceptedCatalogue(row, both),
});

const toMarks = ({ latestPin, latestAt, acceptedPin, acceptedAt }: SmallRow): readonly [Mark, Mark] => [
  { pin: latestPin, at: latestAt },
  { pin: acceptedPin, at: acceptedAt },
];

/** A condition on the row of a holder, in the tables of credentials and of grants. */
export const heldBy = (sql: SqlClient.SqlClient, { projectId, slug, personId }: CredentialHolder) =>
  sql`project_id = ${projectId} AND slug = ${slug} AND person_id IS NOT DISTINCT FROM ${personId}::uuid`;

const makeCredentials = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const putCredential: Service["putCredential"] = (credential, by) => {
    const { projectId, slug, personId, version, origin, kind } = credential;
    // Of two writes of one version, the second finds the first one's row and changes nothing.
    return sql<{ readonly slug: string }>`
      INSERT INTO connector_credentials AS held (project_id, slug, person_id, version, origin, kind, envelope,
        updated_at, updated_by)
      SELECT ${projectId}, ${slug}, ${personId}::uuid, ${version}::integer, ${origin}, ${kind},
        ${Buffer.from(credential.envelope)}, ${at(by.now)}, ${by.userId}::uuid
      WHERE ${version}::integer = 1 OR EXISTS (SELECT FROM connector_credentials WHERE ${heldBy(sql, credential)})
      ON CONFLICT (project_id, slug, person_id) DO UPDATE SET
        version = excluded.version, origin = excluded.origin, kind = excluded.kind, envelope = excluded.envelope,
        updated_at = excluded.updated_at, updated_by = excluded.updated_by
      WHERE held.version = excluded.version - 1
      RETURNING slug`.pipe(
      Effect.flatMap(([row]) => (row === undefined ? Effect.fail(new Fenced({ id: slug })) : Effect.void)),
      toStored("connectors.putCredential"),
    );
  };
  return {
    putCredential,
    credentials: (projectId, personId) =>
      sql<StoredCredential>`
        SELECT slug, person_id AS "personId", origin, kind, updated_at AS "updatedAt", updated_by AS "updatedBy"
        FROM connector_credentials
        WHERE project_id = ${projectId} AND (person_id IS NULL OR person_id = ${personId}) AND envelope IS NOT NULL
        ORDER BY slug COLLATE "C", person_id NULLS FIRST`.pipe(toStored("connectors.credentials")),
    credential: (holder) =>
      sql<SealedCredential>`
        SELECT project_id AS "projectId", slug, person_id AS "personId", version, origin, kind, envelope
        FROM connector_credentials WHERE ${heldBy(sql, holder)} AND envelope IS NOT NULL`.pipe(
        Effect.map(([row]) => row ?? null),
        toStored("connectors.credential"),
      ),
    nextVersion: (holder) =>
      sql<{ readonly version: number }>`
        SELECT version FROM connector_credentials WHERE ${heldBy(sql, holder)}`.pipe(
        Effect.map(([row]) => (row?.version ?? 0) + 1),
        toStored("connectors.nextVersion"),
      ),
    removeCredential: (holder, now) =>
      sql<{ readonly slug: string }>`
        UPDATE connector_credentials SET envelope = NULL, updated_at = ${at(now)}
        WHERE ${heldBy(sql, holder)} AND envelope IS NOT NULL RETURNING slug`.pipe(
        Effect.map((rows) => rows.length > 0),
        toStored("connectors.removeCredential"),
      ),
    leftCredentials: sql<CredentialHolder>`
      SELECT project_id AS "projectId", slug, person_id AS "personId" FROM connector_credentials
      JOIN users ON users.id = person_id AND users.deactivated_at IS NOT NULL
      WHERE person_id IS NOT NULL AND envelope IS NOT NULL LIMIT 100`.pipe(
      toStored("connectors.leftCredentials"),
    ),
  } satisfies Partial<Service>;
});

const LATEST = ["latest", "latest_pin", "latest_at", "protocol"];
const ACCEPTED = ["accepted", "accepted_pin", "accepted_at", "accepted_by"];

/** Assignments that keep these columns of a row about the same URL, and empty them otherwise. */
const keepColumns = (columns: readonly string[]): string =>
  columns.map((column) => `${column} = CASE WHEN held.url = excluded.url THEN held.${column} END`).join(", ");

/** Adds the catalogues to small rows, in the order of the rows. */
const makeReader = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(SMALL_COLUMNS);
  const texts = new CatalogueTexts();
  const cachedCatalogue = (projectId: string, row: SmallRow): StoredCatalogue | null => {
    const both = texts.find(`${projectId} ${row.slug}`, ...toMarks(row));
    return both === null ? null : toStoredCatalogue(row, both);
  };
  /** Rows whose catalogues are not here, read whole: their small columns may have changed, too. */
  const readWhole = (projectId: string, slugs: readonly string[]) =>
    sql<CatalogueRow>`
      SELECT ${columns}, latest, accepted FROM connector_catalogues
      WHERE project_id = ${projectId} AND slug = ANY(${slugs})`.pipe(
      Effect.map((rows) =>
        rows.map((row) => {
          const [latest, accepted] = toMarks(row);
          const both = texts.keep(
            `${projectId} ${row.slug}`,
            { ...latest, text: row.latest },
            { ...accepted, text: row.accepted },
          );
          return toStoredCatalogue(row, both);
        }),
      ),
    );
  return Effect.fnUntraced(function* (projectId: string, rows: readonly SmallRow[]) {
    const here = rows.map((row) => cachedCatalogue(projectId, row) ?? row.slug);
    const missing = here.filter((each) => typeof each === "string");
    if (missing.length === 0) return here.filter((each) => typeof each !== "string");
    const read = new Map((yield* readWhole(projectId, missing)).map((one) => [one.slug, one]));
    return here.flatMap((each) => (typeof each === "string" ? (read.get(each) ?? []) : [each]));
  });
});

const CHANNEL = "platform_tools";

const makeCatalogues = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(SMALL_COLUMNS);
  const withTexts = yield* makeReader;
  const waiting = new Waiting();
  const { say } = yield* makeSignal(CHANNEL, (projectId) => waiting.wake(projectId));
  /** Tells readers of the project's tools after the commit. */
  const announceChange = <A, E>(projectId: string, change: Effect.Effect<A, E>) =>
    sql.withTransaction(Effect.tap(change, () => say([projectId])));
  const forgetOtherAccepted = sql.literal(keepColumns(ACCEPTED));
  return {
    catalogues: (projectId) =>
      sql<SmallRow>`
        SELECT ${columns} FROM connector_catalogues WHERE project_id = ${projectId} ORDER BY slug COLLATE "C"`.pipe(
        Effect.flatMap((rows) => withTexts(projectId, rows)),
        toStored("connectors.catalogues"),
      ),
    catalogue: (projectId, slug) =>
      sql<SmallRow>`
        SELECT ${columns} FROM connector_catalogues WHERE project_id = ${projectId} AND slug = ${slug}`.pipe(
        Effect.flatMap((rows) => withTexts(projectId, rows)),
        Effect.map(([one]) => one ?? null),
        toStored("connectors.catalogue"),
      ),
    changed: (projectId) => waiting.wait(projectId),
    saw: ({ projectId, slug, url }, { catalogue, pin, protocol, at: seenAt }) =>
      announceChange(
        projectId,
        sql`
        INSERT INTO connector_catalogues AS held
          (project_id, slug, url, protocol, latest, latest_pin, latest_at, failure, tried_at)
        SELECT id, ${slug}, ${url}, ${protocol}, ${jsonb(catalogue)}, ${pin}, ${at(seenAt)}::timestamptz, NULL,
          ${at(seenAt)}::timestamptz
        FROM projects WHERE id = ${projectId}
        ON CONFLICT (project_id, slug) DO UPDATE SET
          url = excluded.url, protocol = excluded.protocol, latest = excluded.latest,
          latest_pin = excluded.latest_pin, latest_at = excluded.latest_at, failure = NULL,
          tried_at = excluded.tried_at, ${forgetOtherAccepted}`,
      ).pipe(Effect.asVoid, toStored("connectors.saw")),
    failed: ({ projectId, slug, url }, { failure, now }) =>
      sql`
        INSERT INTO connector_catalogues AS held (project_id, slug, url, failure, tried_at)
        SELECT id, ${slug}, ${url}, ${failure}, ${at(now)}::timestamptz FROM projects WHERE id = ${projectId}
        ON CONFLICT (project_id, slug) DO UPDATE SET
          url = excluded.url, failure = excluded.failure, tried_at = excluded.tried_at, ${sql.literal(keepColumns([...LATEST, ...ACCEPTED]))}`.pipe(
        Effect.asVoid,
        toStored("connectors.failed"),
      ),
    accept: ({ projectId, slug, url }, { pin, userId, now }) =>
      announceChange(
        projectId,
        sql<{ readonly slug: string }>`
        UPDATE connector_catalogues SET accepted = latest, accepted_pin = latest_pin, accepted_at = ${at(now)},
          accepted_by = ${userId}
        WHERE project_id = ${projectId} AND slug = ${slug} AND url = ${url} AND latest_pin = ${pin}
        RETURNING slug`,
      ).pipe(
        Effect.map((rows) => rows.length > 0),
        toStored("connectors.accept"),
      ),
    outdated: (before, limit) =>
      sql<{ readonly projectId: string; readonly slug: string }>`
        SELECT project_id AS "projectId", slug FROM connector_catalogues WHERE tried_at < ${at(before)}
        ORDER BY tried_at ${sql.literal(`LIMIT ${limit}`)}`.pipe(toStored("connectors.outdated")),
    forget: (projectId, slug) =>
      announceChange(
        projectId,
        sql`DELETE FROM connector_catalogues WHERE project_id = ${projectId} AND slug = ${slug}`,
      ).pipe(Effect.asVoid, toStored("connectors.forget")),
  } satisfies Partial<Service>;
});

export const layer = Layer.effect(
  Connectors,
  Effect.gen(function* () {
    return { ...(yield* makeCredentials), ...(yield* makeCatalogues) };
  }),
);
