/** Marks changes of projects, and finds them again: for the memory of those who go by them (api.md 4 "Admission"). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { Waiting } from "../waiting.ts";
import type { Notifications } from "./connection/notifications.ts";
import { makeSignal } from "./connection/signals.ts";

const CHANNEL = "platform_projects";
/** Whoever waits, waits for any project. */
const ANY = "any";

type Changed = { readonly id: string; readonly version: number };

export class ProjectChanges extends Context.Service<
  ProjectChanges,
  {
    /** The project is of another version with this transaction. */
    readonly mark: (projectId: string) => Effect.Effect<void, SqlError>;
    /** The same of all projects of an account. */
    readonly markAccount: (accountId: string) => Effect.Effect<void, SqlError>;
    readonly changed: Effect.Effect<void>;
    readonly changedSince: (
      since: string | null,
    ) => Effect.Effect<{ readonly changed: readonly Changed[]; readonly since: string }, SqlError>;
  }
>()("platform/store/postgres/ProjectChanges") {}

/** 18 digits of a xid8; what else is said to be one is read as the beginning. */
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
        // One statement, one snapshot: what it does not see yet is of its oldest running transaction or of a later one.
        const [look] = yield* sql<{ readonly since: string; readonly changed: readonly Changed[] }>`
          SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS since, coalesce(
            (SELECT jsonb_agg(jsonb_build_object('id', id, 'version', version)) FROM projects
             WHERE changed_tx >= ${from}::text::xid8), '[]') AS changed`;
        return look ?? { since: from, changed: [] };
      }),
    };
  }),
);
