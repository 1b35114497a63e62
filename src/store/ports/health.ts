import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { Stored } from "./journal.ts";

/** Whether the database is well (`/readyz`). */
export class StoreHealth extends Context.Service<
  StoreHealth,
  {
    /** An empty query. */
    readonly ping: Stored<void>;
    /** The outcome of the node's last heartbeats. It asks nothing. */
    readonly state: Effect.Effect<{ readonly writes: boolean; readonly notifies: boolean }>;
  }
>()("platform/store/StoreHealth") {}
