import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

/** Whether the database answers (`/readyz`). */
export class StoreHealth extends Context.Service<StoreHealth, { readonly ping: Stored<void> }>()(
  "platform/store/StoreHealth",
) {}
