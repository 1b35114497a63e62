/** Suspended own credentials. The rules are those of src/domain/connector/own-credential.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Suspension } from "../../../domain/connector/own-credential.ts";
import { Suspensions } from "../../ports/connectors/suspensions.ts";
import { at, toStored } from "../connection/statement.ts";

interface Row extends Pick<Suspension, "sessionId" | "act" | "at"> {
  readonly userId: string;
  readonly name: string;
}

export const layer = Layer.effect(
  Suspensions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    return {
      suspend: (sessionId, { userId, act, now }) =>
        sql`
          INSERT INTO suspended_credentials (session_id, user_id, act, at)
          VALUES (${sessionId}, ${userId}, ${act}, ${at(now)}) ON CONFLICT DO NOTHING`.pipe(
          Effect.asVoid,
          toStored("suspensions.suspend"),
        ),
      get: (sessionId) =>
        sql<Row>`
          WITH RECURSIVE above (id, parent, depth) AS (
            SELECT id, parent_session_id, 0 FROM project_sessions WHERE id = ${sessionId}
            UNION ALL
            SELECT session.id, session.parent_session_id, above.depth + 1
            FROM above JOIN project_sessions AS session ON session.id = above.parent
          )
          SELECT suspended.session_id AS "sessionId", suspended.act, suspended.at, suspended.user_id AS "userId", users.name
          FROM above
          JOIN suspended_credentials AS suspended ON suspended.session_id = above.id
          JOIN users ON users.id = suspended.user_id
          ORDER BY above.depth LIMIT 1`.pipe(
          Effect.map(([row]) => {
            if (row === undefined) return null;
            const { userId: id, name, ...suspension } = row;
            return { ...suspension, by: { id, name } };
          }),
          toStored("suspensions.get"),
        ),
      end: (sessionId) =>
        sql`DELETE FROM suspended_credentials WHERE session_id = ${sessionId} RETURNING session_id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("suspensions.end"),
        ),
    };
  }),
);
