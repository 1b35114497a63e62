/**
 * The browsers that are signed in to the page: one of the store's ports, see journal.ts. A browser's session is a token of
 * the kind `browser`, so it authenticates, and ends what it opened, as every token does (identity.ts, grants.ts).
 *
 *  B1 A session ends 8 hours after its last use, 7 days after its beginning, with the token that opened it, and with its
 *     person's deactivation. It never lives longer than that token.
 *  B2 It reaches what the token that opened it reaches. A session that a sign-in provider opened reaches all that its
 *     person does.
 *  B3 A one-time link opens one session, also for concurrent requests on several nodes.
 *  B4 Only hashes are kept.
 */
import * as Context from "effect/Context";
import type { BadCursor } from "../errors.ts";
import type { Stored } from "../journal.ts";
import type { Page, PageRequest } from "../page.ts";

/** How long an unused session lives. Uses are noted once a minute. */
export const IDLE_MS = 8 * 60 * 60 * 1000;
/** How long a session lives at most. */
export const LIFE_MS = 7 * 24 * 60 * 60 * 1000;
/** The sessions of a person. Beyond that, a new one ends the oldest. */
export const SESSIONS_MAX = 100;
/** The one-time links of a token that may be open. Beyond that, a new one ends the oldest. */
export const LINKS_MAX = 100;

/** How a browser signed in: with an access token or its one-time link, or at a provider. */
export type SignedInBy = "token" | "oidc" | "github";

export interface BrowserSession {
  readonly id: string;
  readonly signedInBy: SignedInBy;
  /** The token that opened it. Null if a provider did. */
  readonly openedBy: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  /** Moves with each noted use. */
  readonly expiresAt: number;
  /** The client's, as this node saw it. */
  readonly address: string | null;
  readonly userAgent: string | null;
}

export interface NewBrowserSession {
  readonly id: string;
  /** Of the cookie. */
  readonly hash: string;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly now: number;
}

/** Whose session was opened. */
export interface SignedInPerson {
  readonly id: string;
  readonly name: string;
}

export class BrowserSessions extends Context.Service<
  BrowserSessions,
  {
    /**
     * A session of the access token with this hash. Null if no such token of a person is alive. The tokens of sandboxes
     * open none: an agent is not a person.
     */
    readonly open: (tokenHash: string, session: NewBrowserSession) => Stored<SignedInPerson | null>;
    /** Keeps a one-time link of a token. A link of an unknown token is not kept. */
    readonly issueLink: (link: {
      readonly hash: string;
      readonly tokenHash: string;
      readonly expiresAt: number;
      readonly now: number;
    }) => Stored<void>;
    /** The person that a link signs in. It changes no row. Null as for `openLink`. */
    readonly person: (linkHash: string, now: number) => Stored<SignedInPerson | null>;
    /** Uses a link up. Null if it is unknown, used or expired, or its token has ended. */
    readonly openLink: (linkHash: string, session: NewBrowserSession) => Stored<SignedInPerson | null>;
    /** A person's sessions that are alive, newest first. */
    readonly list: (
      userId: string,
      request: PageRequest & { readonly now: number },
    ) => Stored<Page<BrowserSession>, BadCursor>;
    /** Ends a person's session on all nodes. False: she has no such session. */
    readonly end: (userId: string, id: string) => Stored<boolean>;
    /** Ends all sessions of a person on all nodes. False: she has none. */
    readonly endAll: (userId: string) => Stored<boolean>;
    /**
     * Ends the session with this hash, whose cookie a browser shows at sign-out.
     * @returns whose session it was. Null if there is no such session.
     */
    readonly signOut: (hash: string) => Stored<(SignedInPerson & { readonly sessionId: string }) | null>;
  }
>()("platform/store/BrowserSessions") {}
