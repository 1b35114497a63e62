/** Conversations in Postgres: locks, plans, signals between nodes. */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { describe, expect } from "vitest";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import {
  laterItems,
  namedItems,
  newestItems,
  openItems,
} from "../../../src/store/postgres/conversations/rows.ts";
import { fillTables, openSnapshot } from "../../../src/store/postgres/rows.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import {
  converse,
  nativeItem,
  nativeTool,
  replaceSandbox,
  report,
} from "../../support/world/conversations.ts";
import { admitSession, tellSession } from "../../support/world/sessions.ts";
import { counted } from "../../support/postgres/counted.ts";
import { explain } from "../../support/postgres/explain.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";
import { freshDatabase, listening, someoneWaits, storeOfFile } from "../../support/postgres/postgres.ts";
import { type Store } from "../../conformance/store/fixture.ts";

const node = (url: string) => Layer.provideMerge(postgresStore, Client.layer({ url }));
const store = storeOfFile();
/** Registers a test. Its fibers end before its store does, also if it fails. */
const check = <E>(name: string, test: Effect.Effect<void, E, Store | SqlClient.SqlClient | Scope.Scope>) => {
  it.live(name, () => Effect.provide(Effect.scoped(test), store, { local: true }));
};

const newest = { before: null, limit: 100 };
const ITEMS = 10_000;

/** Adds items to a conversation, one in a hundred of them open. */
const fill = Effect.fnUntraced(function* (sessionId: string) {
  const sql = yield* SqlClient.SqlClient;
  yield* sql`
    INSERT INTO conversation_items (session_id, id, seq, place, native_id, rev, kind, status, record, bytes)
    SELECT ${sessionId}, gen_random_uuid(), n, n, 'native ' || n, n, CASE WHEN n % 100 = 0 THEN 'request' ELSE 'tool' END,
      CASE WHEN n % 100 = 0 THEN 'pending' ELSE 'completed' END, jsonb_build_object('content', repeat('x', 500)), 520
    FROM generate_series(2, ${ITEMS}) AS n`;
  yield* sql`UPDATE conversations SET seq = ${ITEMS} WHERE session_id = ${sessionId}`;
});

describe("a conversation of 10,000 items", () => {
  check(
    "is read by index, page by page and change by change, and no statement reads more than it returns",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const world = yield* makeWorld(5);
      const [{ sessionId: id }, other] = [yield* converse(world), yield* converse(world)];
      yield* fill(id);
      yield* fill(other.sessionId);
      yield* sql`ANALYZE conversation_items`;
      const place = { steps: ["Limit", "Index Scan"], indexes: ["conversation_items_place_key"], most: 50 };
      expect(yield* explain(newestItems(sql, { id, before: null, limit: 50 }))).toEqual(place);
      expect(yield* explain(newestItems(sql, { id, before: 5_000, limit: 50 }))).toEqual(place);
      const later = yield* explain(laterItems(sql, { id, seq: 5_000, limit: 50 }));
      expect(later).toEqual({ ...place, indexes: ["conversation_items_seq_key"] });
      const open = yield* explain(openItems(sql, { id, only: sql`kind = 'request'` }));
      expect(open).toMatchObject({ indexes: ["conversation_items_open_idx"], most: 101 });
      const ids = [id, other.sessionId];
      const named = yield* explain(namedItems(sql, id, { ids, nativeIds: ["native 7", "native 9000"] }));
      expect(named.indexes).toEqual(["conversation_items_pkey", "conversation_items_native_key"]);
      expect(named.most).toBe(3);
    }),
  );
});

/** Completes when an operation waits for a lock. Fails if the operation ends without. */
const blocked = (running: Fiber.Fiber<unknown, unknown>) =>
  Effect.raceFirst(Effect.as(Fiber.await(running), "ends"), Effect.as(someoneWaits, "waits")).pipe(
    Effect.map((first) => {
      expect(first).toBe("waits");
    }),
  );

/** Holds a conversation's lock until an operation waits for it, and does something else meanwhile. */
const whileWaiting = Effect.fnUntraced(function* <A, E, E2>(
  sessionId: string,
  operation: Effect.Effect<A, E, Store>,
  meanwhile: Effect.Effect<unknown, E2, Store | SqlClient.SqlClient>,
) {
  const sql = yield* SqlClient.SqlClient;
  const [isHeld, mayGoOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
  const holder = yield* Effect.forkScoped(
    sql.withTransaction(
      Effect.gen(function* (): Effect.fn.Return<void, SqlError> {
        yield* sql`SELECT FROM conversations WHERE session_id = ${sessionId} FOR UPDATE`;
        yield* Deferred.succeed(isHeld, undefined);
        yield* Deferred.await(mayGoOn);
      }),
    ),
  );
  yield* Deferred.await(isHeld);
  const running = yield* Effect.forkScoped(operation);
  yield* blocked(running);
  yield* meanwhile;
  yield* Deferred.succeed(mayGoOn, undefined);
  yield* Fiber.join(holder);
  return yield* Fiber.join(running);
});

const growing = (rev: number, text: string) =>
  nativeItem("grows", rev, { status: "running", completed_at: null, content: [{ type: "text", text }] });

describe("a text that grows", () => {
  check(
    "is written with one statement a version, after its first one",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      let text = "";
      for (let rev = 1; rev <= 5; rev += 1) {
        text += `${rev} `;
        const write = note(sessionId, report(sandboxId, rev, { items: [growing(rev, text)] }));
        const { answer, count } = yield* counted(write);
        expect(answer?.changes.map(({ type, seq }) => [type, seq])).toEqual([["item", rev + 1]]);
        if (rev > 1) expect(count()).toBe(1);
      }
      expect((yield* page(sessionId, newest))?.items[0]?.content).toEqual([{ type: "text", text }]);
    }),
  );

  check(
    "is written as usual after anyone else wrote to the conversation, or after the sandbox's end",
    Effect.gen(function* () {
      const { note, close, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      yield* note(sessionId, report(sandboxId, 1, { items: [growing(1, "one ")] }));
      // It changes nothing but the version of the row.
      yield* close(sessionId, { sandboxId: sessionId, as: "lost", now: NOON });
      const { answer, count } = yield* counted(
        note(sessionId, report(sandboxId, 2, { items: [growing(2, "one two ")] })),
      );
      expect(answer?.conversation.seq).toBe(3);
      expect(count()).toBeGreaterThan(1);
      yield* replaceSandbox(sessionId, sandboxId);
      expect(yield* note(sessionId, report(sandboxId, 3, { items: [growing(3, "one two three ")] }))).toBe(
        null,
      );
      expect((yield* page(sessionId, newest))?.items[0]?.content).toEqual([
        { type: "text", text: "one two " },
      ]);
    }),
  );
});

describe("a writer of a conversation that was held up", () => {
  check(
    "writes nothing once its session has another sandbox",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const before = yield* page(sessionId, newest);
      const late = note(sessionId, report(sandboxId, 5, { items: [nativeItem("late", 5)] }));
      expect(yield* whileWaiting(sessionId, late, replaceSandbox(sessionId, sandboxId))).toBe(null);
      expect(yield* page(sessionId, newest)).toEqual(before);
    }),
  );

  check(
    "writes no growth of a text either",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      yield* note(sessionId, report(sandboxId, 4, { items: [growing(4, "one ")] }));
      const before = yield* page(sessionId, newest);
      const late = note(sessionId, report(sandboxId, 5, { items: [growing(5, "one two ")] }));
      expect(yield* whileWaiting(sessionId, late, replaceSandbox(sessionId, sandboxId))).toBe(null);
      expect(yield* page(sessionId, newest)).toEqual(before);
    }),
  );

  check(
    "makes no conversation for a session that is deleted meanwhile",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const { open, get } = yield* Conversations;
      const id = yield* admitSession(yield* makeWorld(5));
      const [isDeleted, mayGoOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const deletion = yield* Effect.forkScoped(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* tellSession(id, { type: "delete.requested" });
            yield* Deferred.succeed(isDeleted, undefined);
            yield* Deferred.await(mayGoOn);
          }),
        ),
      );
      yield* Deferred.await(isDeleted);
      const opening = yield* Effect.forkScoped(open(id, NOON));
      yield* blocked(opening);
      yield* Deferred.succeed(mayGoOn, undefined);
      yield* Fiber.join(deletion);
      expect([yield* Fiber.join(opening), yield* get(id)]).toEqual([null, null]);
    }),
  );
});

describe("a reader of a conversation", () => {
  it.live("on another node is woken by a commit on this one", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("migrated");
      const { sessionId, sandboxId } = yield* Effect.provide(
        Effect.flatMap(makeWorld(5), converse),
        node(url),
        {
          local: true,
        },
      );
      yield* Effect.gen(function* () {
        const here = yield* Layer.build(node(url));
        const there = yield* Layer.build(Layer.fresh(node(url)));
        const { changed, get } = yield* Effect.provide(Conversations, there);
        yield* Effect.provide(listening, here);
        yield* Effect.provide(listening, there);
        const woken = yield* Effect.forkChild(changed(sessionId), { startImmediately: true });
        const { note } = yield* Effect.provide(Conversations, here);
        yield* note(sessionId, report(sandboxId, 1, { items: [nativeItem("a", 1)] }));
        yield* Fiber.join(woken);
        expect((yield* get(sessionId))?.seq).toBe(2);
      }).pipe(Effect.scoped);
    }).pipe(Effect.scoped),
  );
});

/** The conversation as readers see it, with what is kept beside it. */
const shown = Effect.fnUntraced(function* (sessionId: string, itemId: string) {
  const { page, output, attachment } = yield* Conversations;
  return [
    yield* page(sessionId, newest),
    yield* output(sessionId, itemId),
    yield* attachment(sessionId, sessionId),
  ] as const;
});

describe("a backup", () => {
  it.live("contains conversations, with their outputs and attachments", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* freshDatabase("migrated"), yield* freshDatabase("migrated")];
      const { sessionId, itemId, before } = yield* Effect.gen(function* () {
        const { note, page, keepOutput, keepAttachment } = yield* Conversations;
        const { sessionId: id, sandboxId } = yield* converse(yield* makeWorld(5));
        const items = [nativeTool('"x", (y)\\z\n\t€', 1, "begin,\n(end)")];
        const turn = { state: "requires_action", waiting_for: null } as const;
        yield* note(id, report(sandboxId, 1, { items, turn }));
        const tool = (yield* page(id, newest))?.items.find(({ kind }) => kind === "tool")?.id ?? "";
        yield* keepOutput(id, { itemId: tool, sandboxId, text: 'all of it: "ü", \\N' });
        const content = Buffer.from([0, 255, 10, 92]);
        const file = { id, name: "a,b.bin", mediaType: "image/png", sha256: "s", content };
        yield* keepAttachment(id, { ...file, now: NOON });
        return { sessionId: id, itemId: tool, before: yield* shown(id, tool) };
      }).pipe(Effect.provide(node(from), { local: true }));
      const { tables, rows } = yield* openSnapshot(from);
      yield* fillTables(to, async ({ add }) => {
        for (const table of tables) for await (const portion of rows(table)) await add(table, portion);
      });
      expect(yield* Effect.provide(shown(sessionId, itemId), node(to), { local: true })).toEqual(before);
      expect(before[1]).toContain("all of it");
      expect(before[2]?.content).toHaveLength(4);
    }).pipe(Effect.scoped),
  );
});
