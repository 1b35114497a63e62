/** What the tags of base images stand for: the rows of environment_bases. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { type EnvironmentBase, EnvironmentBases } from "../../ports/projects/environment-bases.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, toStored } from "../connection/statement.ts";

const COLUMNS = `
  reference, digest, looked_up_at AS "lookedUpAt", tried_at AS "triedAt", failures, problem, due_at AS "dueAt"`;

type Service = EnvironmentBases["Service"];

export const layer = Layer.effect(
  EnvironmentBases,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const get: Service["get"] = (references) =>
      sql<EnvironmentBase>`
        SELECT ${sql.literal(COLUMNS)} FROM environment_bases
        WHERE reference = ANY(${[...references]}::text[]) ORDER BY reference COLLATE "C"`.pipe(
        onSharedConnection,
        toStored("environmentBases.get"),
      );
    const take: Service["take"] = ({ references, now, until, limit }) =>
      sql<Pick<EnvironmentBase, "reference" | "failures">>`
        WITH due AS (
          SELECT wanted.reference FROM unnest(${[...references]}::text[]) AS wanted (reference)
          LEFT JOIN environment_bases AS known USING (reference)
          WHERE known.due_at IS NULL OR known.due_at <= ${at(now)}
          ORDER BY known.due_at NULLS FIRST, wanted.reference COLLATE "C" LIMIT ${limit}
        )
        INSERT INTO environment_bases AS base (reference, tried_at, due_at)
        -- In one order, so that two nodes never wait for each other.
        SELECT reference, ${at(now)}::timestamptz, ${at(until)}::timestamptz FROM due ORDER BY reference COLLATE "C"
        ON CONFLICT (reference) DO UPDATE SET tried_at = excluded.tried_at, due_at = excluded.due_at
          WHERE base.due_at <= ${at(now)}
        RETURNING reference, failures`.pipe(toStored("environmentBases.take"));
    const noteFound: Service["found"] = ({ reference, digest, now, dueAt }) =>
      sql`
        INSERT INTO environment_bases AS base (reference, digest, looked_up_at, tried_at, due_at)
        VALUES (${reference}, ${digest}, ${at(now)}, ${at(now)}, ${at(dueAt)})
        ON CONFLICT (reference) DO UPDATE SET digest = excluded.digest, looked_up_at = excluded.looked_up_at,
          tried_at = excluded.tried_at, due_at = excluded.due_at, failures = 0, problem = NULL
          WHERE base.looked_up_at IS NULL OR base.looked_up_at <= excluded.looked_up_at`.pipe(
        Effect.asVoid,
        toStored("environmentBases.found"),
      );
    const noteMiss: Service["missed"] = ({ reference, problem, now, dueAt }) =>
      sql`
        UPDATE environment_bases
        SET failures = failures + 1, problem = ${problem}, tried_at = ${at(now)}, due_at = ${at(dueAt)}
        WHERE reference = ${reference} AND (looked_up_at IS NULL OR looked_up_at <= ${at(now)})`.pipe(
        Effect.asVoid,
        toStored("environmentBases.missed"),
      );
    const prune: Service["prune"] = (before) =>
      sql`DELETE FROM environment_bases WHERE tried_at < ${at(before)}`.pipe(
        Effect.asVoid,
        toStored("environmentBases.prune"),
      );
    return { get, take, found: noteFound, missed: noteMiss, prune };
  }),
);
