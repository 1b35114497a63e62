/** Messages to a session that stops for a reason of the service, or at that moment (api.md 3, messages). */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  eventually,
  expectStatus,
  makeHookProject,
  reached,
  runSession,
  stopSession,
  type Fields,
} from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";
import { shareService } from "../support/service/shared.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service);
});
afterAll(() => service.close());

const post = async (sid: string, more: Fields = {}) => {
  const body = { id: randomUUID(), text: "Go on.", ...more };
  return expectStatus(
    await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/messages`, { body }),
    201,
  );
};
const inDatabase = <A, E>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  service.inside(Effect.flatMap(SqlClient.SqlClient, use));

describe("a message", () => {
  it("restarts a session that began to stop while the message was written", async () => {
    const sid = await runSession(service, pid);
    // Opens the conversation.
    await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/conversation`);
    service.daemon.saves.closeUnsafe();
    const [isLocked, isOver] = [Latch.makeUnsafe(false), Latch.makeUnsafe(false)];
    const lock = inDatabase((sql) =>
      sql.withTransaction(
        sql`SELECT 1 FROM conversations WHERE session_id = ${sid}::uuid FOR UPDATE`.pipe(
          Effect.andThen(isLocked.open),
          Effect.andThen(isOver.await),
        ),
      ),
    );
    await Effect.runPromise(isLocked.await);
    const sent = post(sid);
    await eventually(async () => {
      const waiting = await inDatabase(
        (sql) =>
          sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(waiting.length).toBeGreaterThan(0);
    });
    const stopped = stopSession(service, pid, sid);
    await eventually(() => expect(service.daemon.saving()).toBe(1));
    isOver.openUnsafe();
    await lock;
    await sent;
    service.daemon.saves.openUnsafe();
    await stopped;
    await reached(service, pid, sid, "running");
  });

  it.each([
    ["outdated", {}, true],
    ["outdated", { restore_saved: false }, false],
    ["idle", {}, false],
  ] as const)(
    "after a stop with the reason %s and with the wish %j restores saved work: %s",
    async (reason, wish, restored) => {
      const sid = await runSession(service, pid);
      await stopSession(service, pid, sid);
      await inDatabase(
        (sql) => sql`UPDATE project_sessions SET stop_reason = ${reason} WHERE id = ${sid}::uuid`,
      );
      await post(sid, wish);
      await reached(service, pid, sid, "running");
      const rows = await inDatabase(
        (sql) => sql`SELECT restore_saved FROM project_sessions WHERE id = ${sid}::uuid`,
      );
      expect(rows).toEqual([{ restore_saved: restored }]);
    },
  );
});
