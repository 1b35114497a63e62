/** Who calls: accounts and access tokens, as requests are checked by them. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { BadCursor } from "./errors.ts";
import type { Grant, HearEnding } from "./grants.ts";
import type { Stored } from "./journal.ts";
import type { Account, NewToken, Page, PageRequest, Principal, Token } from "./records.ts";

export class Identity extends Context.Service<
  Identity,
  {
    /** First start of an empty database: one account, one user, one account-wide token. False when there was one. */
    readonly bootstrap: (request: {
      readonly accountId: string;
      readonly userId: string;
      readonly tokenId: string;
      readonly tokenHash: string;
      readonly tier: string;
      readonly cap: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** Who presents the token with this hash; null for unknown, expired or revoked, or of an ended session (T03). */
    readonly authenticate: (tokenHash: string, now: number) => Stored<Principal | null>;
    /** Of these grants, the ones that no longer hold. One statement checks all of them and writes nothing. */
    readonly ended: (grants: readonly Grant[], now: number) => Stored<readonly Grant[]>;
    /** Hears, for as long as the scope is open, of tokens and sessions that end on any node. */
    readonly endings: (hear: HearEnding) => Effect.Effect<void, never, Scope.Scope>;
    readonly account: (id: string) => Stored<Account | null>;
    readonly setTier: (accountId: string, tier: string, cap: number) => Stored<void>;
    /** Caps of every tier as configured now, applied to all accounts; a lower cap ends nothing (R07). */
    readonly applyCaps: (caps: Readonly<Record<string, number>>) => Stored<void>;
    readonly createToken: (token: NewToken) => Stored<Token>;
    /** Tokens a user made, newest first; never those of sandboxes. */
    readonly listTokens: (accountId: string, request: PageRequest) => Stored<Page<Token>, BadCursor>;
    readonly deleteToken: (accountId: string, id: string, now: number) => Stored<boolean>;
  }
>()("platform/store/Identity") {}
