/** Stored preview links, and the cookies that replace them (see journal.ts). Only hashes of secrets are stored. */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

/** How many preview rows a session may have. Beyond that, the oldest are removed. */
export const PREVIEWS_PER_SESSION = 100;

export interface NewPreview {
  /** The hash of the link's secret. */
  readonly hash: string;
  /** The token that created the link. The link ends with it. */
  readonly tokenId: string;
  readonly sessionId: string;
  /** The session's current sandbox. The link ends with it. */
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
  readonly now: number;
}

/** The preview that a cookie opens. */
export interface Preview {
  readonly projectId: string;
  readonly sessionId: string;
  readonly sandboxId: string;
  readonly port: number;
  /** The hash of the token that created the link. Authentication decides whether that token is valid. */
  readonly tokenHash: string;
  /** When the cookie expires. */
  readonly expiresAt: number;
}

export class Previews extends Context.Service<
  Previews,
  {
    /** Keeps a link until it is opened or expires. */
    readonly issue: (link: NewPreview) => Stored<void>;
    /**
     * Replaces a link by a cookie, once, even for concurrent calls.
     * @returns false if this session and port have no such link (any more): nothing is written.
     */
    readonly open: (request: {
      readonly linkHash: string;
      readonly sessionId: string;
      readonly port: number;
      readonly cookieHash: string;
      /** When the cookie expires. */
      readonly expiresAt: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** The preview of the cookie with this hash, until it expires. Never a link that was not opened. */
    readonly find: (cookieHash: string, now: number) => Stored<Preview | null>;
  }
>()("platform/store/Previews") {}
