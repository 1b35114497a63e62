/** Providers of models: the table model_providers. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import { Fenced } from "../../../store/ports/journal.ts";
import { violatedConstraint } from "../../../store/postgres/connection/errors.ts";
import { at, jsonb, toStored } from "../../../store/postgres/connection/statement.ts";
import { resealRows } from "../../../store/postgres/reseal.ts";
import {
  ModelProviders,
  NameTaken,
  ProvidersFull,
  type ModelProvider,
  type ProvidersOfSandbox,
} from "../ports/model-providers.ts";
import { ownerAt, type ProviderPlace, PROVIDERS_MAX, sealedName } from "../rules/provider.ts";

const COLUMNS = `id, account_id AS "accountId", project_id AS "projectId", user_id AS "userId", name, kind, base_url AS "baseUrl", models, prices, has_key AS "hasKey",
  sealed_version AS "sealedVersion", envelope, tried_at AS "triedAt", refused_at AS "refusedAt", refusal AS "refusedWith",
  created_at AS "createdAt", updated_at AS "updatedAt"`;
/** The narrowest owner's first. */
const NARROWEST = "user_id IS NULL, project_id IS NULL, created_at, id";

export const SEALED_COLUMNS = ["model_providers.envelope"] as const;
export const resealModelProviders = resealRows({
  table: "model_providers",
  owner: "account_id",
  before: sealedName(""),
});

interface Row extends Omit<ModelProvider, "owner" | "sealed" | "refusal"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array;
  readonly refusedAt: number | null;
  readonly refusedWith: string | null;
}

const toProvider = ({ sealedVersion, envelope, refusedAt, refusedWith, ...row }: Row): ModelProvider => ({
  ...row,
  owner: ownerAt(row),
  sealed: { version: sealedVersion, envelope },
  refusal: refusedAt === null ? null : { at: refusedAt, text: refusedWith ?? "" },
});
const atPlace = (sql: SqlClient.SqlClient, { accountId, projectId, userId }: ProviderPlace) =>
  sql`account_id = ${accountId} AND project_id IS NOT DISTINCT FROM ${projectId}::uuid AND user_id IS NOT DISTINCT FROM ${userId}::uuid`;

interface SandboxRow extends Pick<ProvidersOfSandbox, "sessionId" | "origin" | "createdBy"> {
  readonly sessionProjectId: string;
}

/** @param rows one for each provider, in their order */
const inSandbox = (rows: readonly (Row & SandboxRow)[]): ProvidersOfSandbox | null => {
  const [session] = rows;
  if (session === undefined) return null;
  return {
    sessionId: session.sessionId,
    projectId: session.sessionProjectId,
    origin: session.origin,
    createdBy: session.createdBy,
    providers: rows.map(
      ({ sessionId: _session, sessionProjectId: _project, origin: _origin, createdBy: _by, ...row }) =>
        toProvider(row),
    ),
  };
};
const first = ([row]: readonly Row[]) => (row === undefined ? null : toProvider(row));

type Service = (typeof ModelProviders)["Service"];

const makeWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);

  const get = (place: ProviderPlace, id: string) =>
    Effect.map(
      sql<Row>`SELECT ${columns} FROM model_providers WHERE ${atPlace(sql, place)} AND id = ${id}`,
      first,
    );

  const create = Effect.fnUntraced(function* (provider: Parameters<Service["create"]>[0]) {
    const { id, accountId, projectId, userId, sealed, now } = provider;
    // Two requests for one account wait for each other, and the second one counts the first one's row.
    yield* sql`SELECT id FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    const [held] = yield* sql<{ readonly count: number }>`
      SELECT count(*)::integer AS count FROM model_providers WHERE ${atPlace(sql, provider)}`;
    if ((held?.count ?? 0) >= PROVIDERS_MAX) return yield* new ProvidersFull({ limit: PROVIDERS_MAX });
    const result = first(
      yield* sql<Row>`
        INSERT INTO model_providers (id, account_id, project_id, user_id, name, kind, base_url, models, prices, sealed_version, envelope, has_key, tried_at,
          created_at, updated_at)
        VALUES (${id}, ${accountId}, ${projectId}, ${userId}, ${provider.name}, ${provider.kind}, ${provider.baseUrl}, ${[...provider.models]},
          ${jsonb(provider.prices)}, ${sealed.version}, ${Buffer.from(sealed.envelope)}, ${provider.hasKey}, ${at(provider.triedAt)}, ${at(now)}, ${at(now)})
        RETURNING ${columns}`,
    );
    return result ?? (yield* Effect.die(new Error("an inserted row was not returned")));
  });

  const change = Effect.fnUntraced(function* (...[place, id, wanted]: Parameters<Service["change"]>) {
    const { sealed, now } = wanted;
    const result = first(
      yield* sql<Row>`
        UPDATE model_providers SET base_url = ${wanted.baseUrl}, models = ${[...wanted.models]}, prices = ${jsonb(wanted.prices)}, has_key = ${wanted.hasKey},
          sealed_version = ${sealed.version}, envelope = ${Buffer.from(sealed.envelope)}, tried_at = ${at(wanted.triedAt)},
          updated_at = ${at(now)}, refused_at = NULL, refusal = NULL
        WHERE ${atPlace(sql, place)} AND id = ${id} AND sealed_version = ${sealed.version - 1} RETURNING ${columns}`,
    );
    if (result === null && (yield* get(place, id)) !== null) return yield* new Fenced({ id });
    return result;
  });
  return { create, get, change };
});

export const layer = Layer.effect(
  ModelProviders,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { create, get, change } = yield* makeWrites;
    return {
      create: (provider) =>
        sql.withTransaction(create(provider)).pipe(
          Effect.catchIf(
            (error) => isSqlError(error) && violatedConstraint(error) === "model_providers_name_key",
            () => Effect.fail(new NameTaken({ name: provider.name })),
          ),
          toStored("modelProviders.create"),
        ),
      list: (place) =>
        sql<Row>`
          SELECT ${sql.literal(COLUMNS)} FROM model_providers WHERE ${atPlace(sql, place)} ORDER BY created_at, id`.pipe(
          Effect.map((rows) => rows.map(toProvider)),
          toStored("modelProviders.list"),
        ),
      usable: ({ accountId, projectId, personId }) =>
        sql<Row>`
          SELECT ${sql.literal(COLUMNS)} FROM model_providers
          WHERE account_id = ${accountId} AND (project_id = ${projectId} OR user_id = ${personId}::uuid
            OR (project_id IS NULL AND user_id IS NULL))
          ORDER BY ${sql.literal(NARROWEST)}`.pipe(
          Effect.map((rows) => rows.map(toProvider)),
          toStored("modelProviders.usable"),
        ),
      get: (place, id) => get(place, id).pipe(toStored("modelProviders.get")),
      change: (...args) => sql.withTransaction(change(...args)).pipe(toStored("modelProviders.change")),
      remove: (place, id) =>
        sql`DELETE FROM model_providers WHERE ${atPlace(sql, place)} AND id = ${id} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("modelProviders.remove"),
        ),
      noteRefusal: (id, refusal) =>
        sql`
          UPDATE model_providers SET refused_at = ${at(refusal?.at ?? null)}, refusal = ${refusal?.text ?? null}
          WHERE id = ${id}`.pipe(Effect.asVoid, toStored("modelProviders.noteRefusal")),
      ofSandbox: (sandboxId, name) =>
        sql<Row & SandboxRow>`
          SELECT provider.*, session.id AS "sessionId", session.project_id AS "sessionProjectId", session.origin,
            session.created_by AS "createdBy"
          FROM session_sandboxes AS sandbox JOIN project_sessions AS session ON session.id = sandbox.session_id
            CROSS JOIN LATERAL (
              SELECT ${sql.literal(COLUMNS)} FROM model_providers
              WHERE account_id = session.account_id AND name = ${name}
                AND (project_id = session.project_id OR user_id = session.created_by OR (project_id IS NULL AND user_id IS NULL))
              ORDER BY ${sql.literal(NARROWEST)}) AS provider
          WHERE sandbox.id = ${sandboxId} AND sandbox.status IN ('provisioning', 'active')`.pipe(
          Effect.map(inSandbox),
          toStored("modelProviders.ofSandbox"),
        ),
    };
  }),
);
