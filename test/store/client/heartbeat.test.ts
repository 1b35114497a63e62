/** What a node's heartbeat tells about the database. */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { Nodes } from "../../../src/store/ports/nodes.ts";
import { DatabasePulse, Pulse } from "../../../src/store/postgres/connection/pulse.ts";
import { layer } from "../../../src/store/postgres/nodes.ts";
import { testDatabase } from "../../support/postgres/postgres.ts";

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

class CountingPulse extends Pulse {
  count = 0;
  override heard(): void {
    this.count += 1;
  }
}

it.live("another node's heartbeat does not tell this node that its own came back", () =>
  Effect.gen(function* () {
    const node = Effect.fnUntraced(function* () {
      const pulse = new CountingPulse(() => 0);
      const own = Layer.provide(Layer.fresh(layer), Layer.succeed(DatabasePulse, pulse));
      const { beat } = Context.get(yield* Layer.build(own), Nodes);
      const write = beat({ id: randomUUID(), url: "http://node:1", now: 0 });
      // The first notifications may come before it listens.
      const heard = Effect.sync(() => pulse.count);
      const ready = Effect.andThen(write, heard);
      yield* Effect.repeat(ready, { until: (count) => count > 0, schedule: Schedule.spaced("20 millis") });
      return { pulse, write };
    });
    const [one, other] = [yield* node(), yield* node()];
    const before = one.pulse.count;
    yield* other.write;
    yield* one.write;
    // Notifications of one channel come in their order.
    const own = Effect.sync(() => one.pulse.count);
    yield* Effect.repeat(own, { until: (count) => count > before, schedule: Schedule.spaced("20 millis") });
    expect(one.pulse.count).toBe(before + 1);
  }).pipe(Effect.provide(testDatabase(), { local: true }), Effect.scoped),
);
