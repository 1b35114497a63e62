/** Suspended own credentials in memory: see postgres/connectors/suspensions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Suspensions } from "../../../../src/store/ports/connectors/suspensions.ts";
import { Tables } from "../tables.ts";

export const layer = Layer.effect(
  Suspensions,
  Effect.map(Tables, ({ suspensions, sessions, users }) => ({
    suspend: (sessionId, { userId, act, now }) =>
      Effect.sync(() => {
        if (suspensions.has(sessionId)) return;
        suspensions.set(sessionId, { userId, act, at: now });
      }),
    get: (sessionId) =>
      Effect.sync(() => {
        let id: string | null = sessionId;
        while (id !== null) {
          const row = suspensions.get(id);
          if (row !== undefined) {
            const { userId, ...suspension } = row;
            return { sessionId: id, ...suspension, by: { id: userId, name: users.get(userId)?.name ?? "" } };
          }
          id = sessions.get(id)?.record.parentSessionId ?? null;
        }
        return null;
      }),
    end: (sessionId) => Effect.sync(() => suspensions.delete(sessionId)),
  })),
);
