/** The pause of a restored copy. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Pauses } from "../ports/pauses.ts";
import { toStored } from "./connection/statement.ts";

const KEY = "paused_since";

export const layer = Layer.effect(
  Pauses,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    since: sql<{ readonly value: string }>`SELECT value FROM settings WHERE key = ${KEY}`.pipe(
      Effect.map(([row]) => (row === undefined ? null : Number(row.value))),
      toStored("pauses.since"),
    ),
    begin: (now) =>
      sql`INSERT INTO settings (key, value) VALUES (${KEY}, ${String(now)}) ON CONFLICT DO NOTHING`.pipe(
        Effect.asVoid,
        toStored("pauses.begin"),
      ),
    end: sql`DELETE FROM settings WHERE key = ${KEY} RETURNING key`.pipe(
      Effect.map((rows) => rows.length > 0),
      toStored("pauses.end"),
    ),
  })),
);
