/** Tells every node that a token or session has ended, so that the connections it opened are closed at once. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import type * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { HearEnding } from "../../ports/people/grants.ts";
import type { Notifications } from "./notifications.ts";
import { makeSignal } from "./signals.ts";

const CHANNEL = "platform_endings";

export class Endings extends Context.Service<
  Endings,
  {
    /** Call this inside the transaction that ends these tokens or sessions. */
    readonly say: (ids: readonly string[]) => Effect.Effect<void, SqlError>;
    readonly listen: (hear: HearEnding) => Effect.Effect<void, never, Scope.Scope>;
  }
>()("platform/store/postgres/Endings") {}

export const layer: Layer.Layer<Endings, never, SqlClient.SqlClient | Notifications> = Layer.effect(
  Endings,
  Effect.gen(function* () {
    const listeners = new Set<HearEnding>();
    const { say } = yield* makeSignal(CHANNEL, (id) => {
      for (const hear of listeners) hear(id);
    });
    return {
      say,
      listen: (hear) =>
        Effect.acquireRelease(
          Effect.sync(() => void listeners.add(hear)),
          () => Effect.sync(() => listeners.delete(hear)),
        ),
    };
  }),
);
