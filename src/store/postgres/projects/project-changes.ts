/** Marks changes of projects and finds them again, for caches of project state (api.md 4 "Admission"). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { Waiting } from "../../waiting.ts";
import type { Notifications } from "../connection/notifications.ts";
import { makeSignal } from "../connection/signals.ts";

const CHANNEL = "platform_projects";
/** Every reader waits for changes of any project. */
const ANY = "any";

type Changed = { readonly id: string; readonly version: number };

export class ProjectChanges extends Context.Service<
  ProjectChanges,
  {
    /** Raises the project's version in this transaction. */
    readonly mark: (projectId: string) => Effect.Effect<void, SqlError>;
    /** The same for all projects of an account. */
    readonly markAccount: (accountId: string) => Effect.Effect<void, SqlError>;
    readonly changed: Effect.Effect<void>;
    readonly changedSince: (
      since: string | null,
    ) => Effect.Effect<{ readonly changed: readonly Changed[]; readonly since: string }, SqlError>;
  }
>()("platform/store/postgres/ProjectChanges") {}

/** 18 digits of a xid8. Any other text is read as the beginning. */
const XID = /^\d{1,18}$/;

export const layer: Layer.Layer<ProjectChanges, never, SqlClient.SqlClient | Notifications> = Layer.effect(
  ProjectChanges,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const waiting = new Waiting();
    const { say } = yield* makeSignal(CHANNEL, () => waiting.wake(ANY));
    return {
      mark: (projectId) =>
        Effect.andThen(
          sql`UPDATE projects SET version = version + 1, changed_tx = pg_current_xact_id() WHERE id = ${projectId}`,
          say([projectId]),
        ),
      markAccount: (accountId) =>
        Effect.flatMap(
          sql<{ readonly id: string }>`
            UPDATE projects SET version = version + 1, changed_tx = pg_current_xact_id()
            WHERE account_id = ${accountId} RETURNING id`,
          (rows) => say(rows.map(({ id }) => id)),
        ),
      changed: waiting.wait(ANY),
      changedSince: Effect.fnUntraced(function* (since: string | null) {
        const from = since !== null && XID.test(since) ? since : "0";
        // One statement, one snapshot: a change that it does not see yet belongs to its oldest running transaction or a
        // later one.
        const [look] = yield* sql<{ readonly since: string; readonly changed: readonly Changed[] }>`
          SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS since, coalesce(
            (SELECT jsonb_agg(jsonb_build_object('id', id, 'version', version)) FROM projects
             WHERE changed_tx >= ${from}::text::xid8), '[]') AS changed`;
        return look ?? { since: from, changed: [] };
      }),
    };
  }),
);
