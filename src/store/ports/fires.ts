/** The ledger of fires, with their requests (api.md 4 "Ledger"). */
import * as Context from "effect/Context";
import type { BadCursor } from "./errors.ts";
import type { Stored } from "./journal.ts";
import type { Fire, Page, PageRequest, QueuedFire, StoredRequest } from "./records.ts";

export class Fires extends Context.Service<
  Fires,
  {
    readonly get: (id: string) => Stored<Fire | null>;
    /** The request that the fire came with, if it is stored. */
    readonly request: (id: string) => Stored<StoredRequest | null>;
    /** The prompt of a fire that fired, or that waits with a rendered one. Null for any other. */
    readonly prompt: (id: string) => Stored<string | null>;
    readonly list: (
      projectId: string,
      request: PageRequest & { readonly slug: string | null; readonly status: string | null },
    ) => Stored<Page<Fire>, BadCursor>;
    /** The newest row of each of these triggers that has one. Repeated deliveries do not count. */
    readonly lastBySlug: (projectId: string, slugs: readonly string[]) => Stored<ReadonlyMap<string, Fire>>;
    /** The account's waiting fires in the order in which they will start. */
    readonly queue: (accountId: string) => Stored<readonly QueuedFire[]>;
    /**
     * One small step of pruning: rows received before `before` that do not wait, and stored requests beyond
     * `requestBytes` for an account, oldest first. @returns how many rows were removed. 0: nothing is left to prune.
     */
    readonly prune: (limits: { readonly before: number; readonly requestBytes: number }) => Stored<number>;
  }
>()("platform/store/Fires") {}
