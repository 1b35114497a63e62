/** Messages from before migration 0018 get the words by which they are found. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import { addWords } from "../../../src/store/postgres/conversations/wordless.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { converse, nativeItem, nativeTool, report } from "../../support/world/conversations.ts";
import { makeWorld } from "../../support/world/world.ts";

const store = storeOfFile();

const said = (id: string, rev: number, text: string) =>
  nativeItem(id, rev, { content: [{ type: "text", text }] });

describe("a message from before", () => {
  it.live("is found once its words were added, and once only", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld(3);
      const { sessionId, sandboxId } = yield* converse(world);
      const { note } = yield* Conversations;
      const { list } = yield* Sessions;
      const sql = yield* SqlClient.SqlClient;
      yield* note(
        sessionId,
        report(sandboxId, 1, { items: [said("a", 1, "A porcupine."), nativeTool("b", 1, "x")] }),
      );
      yield* note(
        sessionId,
        report(sandboxId, 2, { items: [{ ...said("c", 2, "It gr"), status: "running" }] }),
      );
      yield* sql`UPDATE conversation_items SET words = NULL`;
      const found = Effect.map(
        list(world.projectId, { limit: 9, cursor: null, status: null, search: "porcupine" }),
        ({ items }) => items.length,
      );
      expect(yield* found).toBe(0);
      expect([yield* addWords(sql), yield* addWords(sql)]).toEqual([1, 0]);
      expect(yield* found).toBe(1);
    }).pipe(Effect.provide(store)),
  );
});
