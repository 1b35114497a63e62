/** Reads the pause of a restored installation whose service does not run. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Pauses } from "../../../src/store/ports/pauses.ts";
import * as Embedded from "../../../src/store/postgres/embedded/embedded.ts";
import { layer } from "../../../src/store/postgres/pauses.ts";

export const pausedSince = (dataDir: string): Promise<number | null> =>
  Effect.runPromise(
    Effect.provide(
      Effect.flatMap(Pauses, ({ since }) => since),
      Layer.provide(layer, Embedded.layer(dataDir)),
    ),
  );
