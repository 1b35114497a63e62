/** Reads and begins the pause of an installation whose service does not run. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Pauses } from "../../../src/store/ports/pauses.ts";
import * as Embedded from "../../../src/store/postgres/embedded/embedded.ts";
import { layer } from "../../../src/store/postgres/pauses.ts";

const over = <A, E>(dataDir: string, effect: Effect.Effect<A, E, Pauses>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, Layer.provide(layer, Embedded.layer(dataDir))));

export const pausedSince = (dataDir: string): Promise<number | null> =>
  over(
    dataDir,
    Effect.flatMap(Pauses, ({ since }) => since),
  );

export const pauseSince = (dataDir: string, now: number): Promise<void> =>
  over(
    dataDir,
    Effect.flatMap(Pauses, ({ begin }) => begin(now)),
  );
