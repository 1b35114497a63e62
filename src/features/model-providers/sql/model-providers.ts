/** Providers of models: the table model_providers. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import { Fenced } from "../../../store/ports/journal.ts";
import { violatedConstraint } from "../../../store/postgres/connection/errors.ts";
import { at, json, stored } from "../../../store/postgres/connection/statement.ts";
import {
  ModelProviders,
  NameTaken,
  ProvidersFull,
  type ModelProvider,
  type ProviderOfSandbox,
  type SessionOfSandbox,
} from "../ports/model-providers.ts";
import { PROVIDERS_MAX } from "../rules/provider.ts";

const COLUMNS = `id, account_id AS "accountId", name, kind, base_url AS "baseUrl", models, prices, has_key AS "hasKey",
  sealed_version AS "sealedVersion", envelope, tried_at AS "triedAt", created_at AS "createdAt", updated_at AS "updatedAt"`;

interface Row extends Omit<ModelProvider, "sealed"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array;
}

const providerOf = ({ sealedVersion, envelope, ...row }: Row): ModelProvider => ({
  ...row,
  sealed: { version: sealedVersion, envelope },
});
const first = ([row]: readonly Row[]) => (row === undefined ? null : providerOf(row));

type Service = (typeof ModelProviders)["Service"];

const makeWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);

  const get = (accountId: string, id: string) =>
    Effect.map(
      sql<Row>`SELECT ${columns} FROM model_providers WHERE account_id = ${accountId} AND id = ${id}`,
      first,
    );

  const create = Effect.fnUntraced(function* (provider: Parameters<Service["create"]>[0]) {
    const { id, accountId, sealed, now } = provider;
    // Two requests for one account wait for each other, and the second one counts the first one's row.
    yield* sql`SELECT id FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    const [held] = yield* sql<{ readonly count: number }>`
      SELECT count(*)::integer AS count FROM model_providers WHERE account_id = ${accountId}`;
    if ((held?.count ?? 0) >= PROVIDERS_MAX) return yield* new ProvidersFull({ limit: PROVIDERS_MAX });
    const made = first(
      yield* sql<Row>`
        INSERT INTO model_providers (id, account_id, name, kind, base_url, models, prices, sealed_version, envelope, has_key, tried_at,
          created_at, updated_at)
        VALUES (${id}, ${accountId}, ${provider.name}, ${provider.kind}, ${provider.baseUrl}, ${[...provider.models]},
          ${json(provider.prices)}, ${sealed.version}, ${Buffer.from(sealed.envelope)}, ${provider.hasKey}, ${at(provider.triedAt)}, ${at(now)}, ${at(now)})
        RETURNING ${columns}`,
    );
    return made ?? (yield* Effect.die(new Error("an inserted row was not returned")));
  });

  const change = Effect.fnUntraced(function* (...[accountId, id, wanted]: Parameters<Service["change"]>) {
    const { sealed, now } = wanted;
    const changed = first(
      yield* sql<Row>`
        UPDATE model_providers SET base_url = ${wanted.baseUrl}, models = ${[...wanted.models]}, prices = ${json(wanted.prices)}, has_key = ${wanted.hasKey},
          sealed_version = ${sealed.version}, envelope = ${Buffer.from(sealed.envelope)}, tried_at = ${at(wanted.triedAt)},
          updated_at = ${at(now)}
        WHERE account_id = ${accountId} AND id = ${id} AND sealed_version = ${sealed.version - 1} RETURNING ${columns}`,
    );
    if (changed === null && (yield* get(accountId, id)) !== null) return yield* new Fenced({ id });
    return changed;
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
          stored("modelProviders.create"),
        ),
      list: (accountId) =>
        sql<Row>`
          SELECT ${sql.literal(COLUMNS)} FROM model_providers WHERE account_id = ${accountId} ORDER BY created_at, id`.pipe(
          Effect.map((rows) => rows.map(providerOf)),
          stored("modelProviders.list"),
        ),
      get: (accountId, id) => get(accountId, id).pipe(stored("modelProviders.get")),
      change: (...given) => sql.withTransaction(change(...given)).pipe(stored("modelProviders.change")),
      remove: (accountId, id) =>
        sql`DELETE FROM model_providers WHERE account_id = ${accountId} AND id = ${id} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          stored("modelProviders.remove"),
        ),
      ofSandbox: (sandboxId, name) =>
        sql<Row & Omit<ProviderOfSandbox, "provider">>`
          SELECT provider.*, session.id AS "sessionId", session.project_id AS "projectId"
          FROM session_sandboxes AS sandbox JOIN project_sessions AS session ON session.id = sandbox.session_id
            CROSS JOIN LATERAL (
              SELECT ${sql.literal(COLUMNS)} FROM model_providers
              WHERE account_id = session.account_id AND name = ${name}) AS provider
          WHERE sandbox.id = ${sandboxId} AND sandbox.status IN ('provisioning', 'active')`.pipe(
          Effect.map(([row]) => {
            if (row === undefined) return null;
            const { sessionId, projectId, ...provider } = row;
            return { provider: providerOf(provider), sessionId, projectId };
          }),
          stored("modelProviders.ofSandbox"),
        ),
      sessionOf: (sandboxId) =>
        sql<SessionOfSandbox>`
          SELECT session.id AS "sessionId", session.project_id AS "projectId"
          FROM session_sandboxes AS sandbox JOIN project_sessions AS session ON session.id = sandbox.session_id
          WHERE sandbox.id = ${sandboxId} AND sandbox.status IN ('provisioning', 'active')`.pipe(
          Effect.map(([row = null]) => row),
          stored("modelProviders.sessionOf"),
        ),
    };
  }),
);
