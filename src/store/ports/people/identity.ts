/** Authenticates callers: accounts and access tokens. */
import * as Context from "effect/Context";
import type { Origin } from "../../../domain/person/privileges.ts";
import type * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { AccountRole, MergeRole, ProjectRole } from "../../../domain/person/role.ts";
import type { BadCursor } from "../errors.ts";
import type { Grant, HearEnding } from "./grants.ts";
import type { Stored } from "../journal.ts";
import type { Account } from "./accounts.ts";
import type { Page, PageRequest } from "../page.ts";
import type { ShownSession } from "../sessions/sessions.ts";

/** The caller of a request, according to its token. */
export interface Principal {
  readonly tokenId: string;
  /** `sandbox`: a PLATFORM_TOKEN, valid for the clone credential alone. `browser`: the session of a signed-in browser. */
  readonly kind: "access" | "sandbox" | "browser";
  readonly origin: Origin;
  readonly accountId: string;
  readonly user: { readonly id: string; readonly name: string };
  /** The user's role in the account, also if a session's or a trigger's token acts for her. */
  readonly accountRole: AccountRole;
  /** Null means account-wide. Otherwise the token is bound to this project. */
  readonly projectId: string | null;
  /** The session whose sandbox carries the token. */
  readonly sessionId: string | null;
  readonly sandboxId: string | null;
  /** When the token expires. Null if never. */
  readonly expiresAt: number | null;
  /** The access token that opened this session of a browser. Null if no token did. */
  readonly openedBy: string | null;
  /**
   * When the access token ends that gives this caller its reach: its own, or the one that opened this session of a browser. What the
   * caller hands on ends no later. Null if never.
   */
  readonly reachEndsAt: number | null;
}

/** Why a token that the store knows opens nothing. `sign_in_required`: its person signed in at a provider too long ago. */
export type EndedWhy =
  | "revoked"
  | "expired"
  | "deactivated"
  | "signed_out"
  | "session_ended"
  | "sign_in_required";

/** A token that opens nothing. */
export interface EndedToken extends Pick<
  Principal,
  "tokenId" | "kind" | "origin" | "accountId" | "user" | "sessionId"
> {
  readonly why: EndedWhy;
}

/**
 * How long a person's tokens, and browsers that they opened, live after her last sign-in at a provider, in milliseconds. Null if they
 * need none. The default is null. The store's adapters read it when they are built.
 */
export const TokenSignIn = Context.Reference<number | null>("platform/store/TokenSignIn", {
  defaultValue: () => null,
});

/** Whose tokens: one person's, or all of the account (`userId` is null). */
export interface TokenOwner {
  readonly accountId: string;
  readonly userId: string | null;
}

/** The ids in the path of a request. */
export interface RequestPath {
  readonly projectId: string;
  readonly sessionId: string | null;
}

/** The rows that the path of a request names, as they were when the caller was authenticated. */
export interface PathRows {
  readonly path: RequestPath;
  /** The caller's role in the project. Null if the project does not exist for her. */
  readonly role: ProjectRole | null;
  /** Who may merge there. */
  readonly mergeRole: MergeRole;
  /** The session, if that project of the caller's account has it. Null also for a deleted one. */
  readonly session: ShownSession | null;
}

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly origin: Origin;
  readonly userId: string;
  readonly projectId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
}

export interface NewToken {
  readonly id: string;
  readonly accountId: string;
  readonly userId: string;
  readonly projectId: string | null;
  readonly name: string;
  readonly hash: string;
  readonly origin: Origin;
  readonly expiresAt: number | null;
  readonly now: number;
}

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
     * The owner of the token with this hash. Null if the token is unknown, expired or revoked, its session has ended
     * (T03), or its person must sign in (`TokenSignIn`).
     */
    readonly authenticate: (tokenHash: string, now: number) => Stored<Principal | null>;
    /** The same, with what the request's path names. One statement reads both. */
    readonly arrive: (
      tokenHash: string,
      now: number,
      path: RequestPath,
    ) => Stored<{ readonly caller: Principal; readonly reached: PathRows } | null>;
    /** Why a hash does not authenticate, if a token has it. Null if no token does, or it authenticates. It writes nothing. */
    readonly endedToken: (tokenHash: string, now: number) => Stored<EndedToken | null>;
    /**
     * Whether sign-ins count (`TokenSignIn`). From an instant: the time of people without one begins there, and that of the others
     * goes on. Null if it is forgotten, so that it begins anew when sign-ins count again.
     */
    readonly countSignIns: (from: number | null) => Stored<void>;
    /** Begins a person's time anew, as a sign-in at a provider does. */
    readonly letIn: (userId: string, now: number) => Stored<void>;
    /** The grants among these that are no longer valid. One statement checks all of them and writes nothing. */
    readonly ended: (grants: readonly Grant[], now: number) => Stored<readonly Grant[]>;
    /** Reports tokens and sessions that end on any node, while the scope is open. */
    readonly endings: (hear: HearEnding) => Effect.Effect<void, never, Scope.Scope>;
    readonly account: (id: string) => Stored<Account | null>;
    /** Names the account. */
    readonly rename: (accountId: string, name: string) => Stored<void>;
    readonly setTier: (accountId: string, tier: string, cap: number) => Stored<void>;
    /** Applies the configured cap of each tier to all accounts. A lower cap ends no session (R07). */
    readonly applyCaps: (caps: Readonly<Record<string, number>>) => Stored<void>;
    readonly createToken: (token: NewToken) => Stored<Token>;
    /** Tokens that a user created, newest first. Never those of sandboxes or browsers. */
    readonly listTokens: (owner: TokenOwner, request: PageRequest) => Stored<Page<Token>, BadCursor>;
    readonly deleteToken: (owner: TokenOwner, id: string, now: number) => Stored<boolean>;
  }
>()("platform/store/Identity") {}
