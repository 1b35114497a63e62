/** Git passwords, created for a sandbox (api.md 6). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { CloneCredentials, type CloneCredential } from "../../ports/sessions/clone-credentials.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, toStored } from "../connection/statement.ts";

export const layer = Layer.effect(
  CloneCredentials,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    return {
      // A sandbox's expired passwords are removed when it gets the next one, so there are never many.
      mint: (credential) =>
        sql`
          WITH expired AS (
            DELETE FROM clone_credentials
            WHERE sandbox_id = ${credential.sandboxId} AND expires_at <= ${at(credential.now)}
          )
          INSERT INTO clone_credentials (hash, project_id, session_id, sandbox_id, created_at, expires_at)
          VALUES (${credential.hash}, ${credential.projectId}, ${credential.sessionId}, ${credential.sandboxId},
            ${at(credential.now)}, ${at(credential.expiresAt)})`.pipe(
          Effect.asVoid,
          toStored("cloneCredentials.mint"),
        ),
      find: (hash, now) =>
        sql<CloneCredential>`
          SELECT hash, credential.project_id AS "projectId", credential.session_id AS "sessionId",
            sandbox_id AS "sandboxId", expires_at AS "expiresAt", credential.created_at AS now
          FROM clone_credentials AS credential
          JOIN session_sandboxes AS sandbox ON sandbox.id = credential.sandbox_id
          JOIN project_sessions AS session ON session.id = credential.session_id
          WHERE hash = ${hash} AND expires_at > ${at(now)} AND sandbox.status IN ('provisioning', 'active')
            AND session.status IN ('provisioning', 'running')`.pipe(
          Effect.map(([row]) => row ?? null),
          onSharedConnection,
          toStored("cloneCredentials.find"),
        ),
    };
  }),
);
