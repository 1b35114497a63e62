/** What a node's heartbeat tells about the database. */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { Nodes } from "../../src/store/ports/nodes.ts";
import { DatabasePulse } from "../../src/store/postgres/connection/pulse.ts";
import { layer } from "../../src/store/postgres/nodes.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

it.live("one that cannot be written says so at once, and the next one that is written says so, too", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const pulse = yield* DatabasePulse;
    const { beat } = Context.get(yield* Layer.build(layer), Nodes);
    const write = Effect.exit(beat({ id: randomUUID(), url: "http://node:1", now: 0 }));
    const seen: boolean[] = [];
    yield* write;
    seen.push(pulse.writes);
    yield* sql`ALTER TABLE nodes RENAME TO elsewhere`;
    yield* write;
    seen.push(pulse.writes);
    yield* sql`ALTER TABLE elsewhere RENAME TO nodes`;
    yield* write;
    seen.push(pulse.writes);
    expect(seen).toEqual([true, false, true]);
  }).pipe(Effect.provide(testDatabase(), { local: true }), Effect.scoped),
);
