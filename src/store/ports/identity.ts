/** Authenticates callers: accounts and access tokens. */
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
    /**
     * First start of an empty database: creates one account, one user and one account-wide token. False if an account
     * exists.
     */
    readonly bootstrap: (request: {
      readonly accountId: string;
      readonly userId: string;
      readonly tokenId: string;
      readonly tokenHash: string;
      readonly tier: string;
      readonly cap: number;
      readonly now: number;
    }) => Stored<boolean>;
    /**
     * The owner of the token with this hash. Null if the token is unknown, expired or revoked, or its session has ended
     * (T03).
     */
    readonly authenticate: (tokenHash: string, now: number) => Stored<Principal | null>;
    /** The grants among these that are no longer valid. One statement checks all of them and writes nothing. */
    readonly ended: (grants: readonly Grant[], now: number) => Stored<readonly Grant[]>;
    /** Reports tokens and sessions that end on any node, while the scope is open. */
    readonly endings: (hear: HearEnding) => Effect.Effect<void, never, Scope.Scope>;
    readonly account: (id: string) => Stored<Account | null>;
    readonly setTier: (accountId: string, tier: string, cap: number) => Stored<void>;
    /** Applies the configured cap of each tier to all accounts. A lower cap ends no session (R07). */
    readonly applyCaps: (caps: Readonly<Record<string, number>>) => Stored<void>;
    readonly createToken: (token: NewToken) => Stored<Token>;
    /** Tokens that a user created, newest first. Never those of sandboxes. */
    readonly listTokens: (accountId: string, request: PageRequest) => Stored<Page<Token>, BadCursor>;
    readonly deleteToken: (accountId: string, id: string, now: number) => Stored<boolean>;
  }
>()("platform/store/Identity") {}
