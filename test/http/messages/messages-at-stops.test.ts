/** Messages to a session that stops for a reason of the service, or at that moment (api.md 3, messages). */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  eventually,
  expectStatus,
  fields,
  makeHookProject,
  reached,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { nativeItem } from "../../support/world/conversations.ts";

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

/** Begins to stop the session while an act writes to its conversation, and completes both. */
const stopMeanwhile = async (sid: string, act: () => Promise<unknown>): Promise<void> => {
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
  const done = act();
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
  await done;
  service.daemon.saves.openUnsafe();
  await stopped;
};

const conversationOf = async (sid: string) =>
  fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/conversation`));

/** The agent's turn ends with a plan. @returns the path of its answer */
const plan = async (sid: string): Promise<string> => {
  const request = {
    kind: "plan",
    title: "Plan",
    patterns: [],
    questions: [],
    plan: { text: "1. Write a.", modes: [{ id: "build", name: "build" }] },
  } as const;
  const item = nativeItem("ask", 101, { kind: "request", status: "running", content: [], request });
  service.daemon.conversation.say(sid, { type: "item", item: { ...item, completed_at: null } });
  const turn = { state: "requires_action", waiting_for: "ask", rests: true } as const;
  service.daemon.conversation.say(sid, { type: "turn", turn, ended: 1, rev: 102 });
  const id = await eventually(async () => {
    const [open] = (await conversationOf(sid))["requests"] as readonly Fields[];
    expect(open).toBeDefined();
    return String(open?.["id"]);
  });
  return `/v1/projects/${pid}/sessions/${sid}/requests/${id}/answer`;
};

describe("an approval of a plan", () => {
  it("restarts a session that began to stop while it was written", async () => {
    const sid = await runSession(service, pid);
    const answer = await plan(sid);
    await stopMeanwhile(sid, async () =>
      expectStatus(await service.request("POST", answer, { body: { approve: true } }), 200),
    );
    await reached(service, pid, sid, "running");
  });
});

describe("a message", () => {
  it("restarts a session that began to stop while the message was written", async () => {
    const sid = await runSession(service, pid);
    // Opens the conversation.
    await conversationOf(sid);
    await stopMeanwhile(sid, () => post(sid));
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
