/**
 * Preview links and the cookies that take their place, as the store keeps them (see journal.ts).
 * Only hashes of secrets are kept.
 */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

/** A preview's rows of one session; beyond, the oldest give way. */
export const PREVIEWS_PER_SESSION = 100;

export interface NewPreview {
  /** Of the link's secret. */
  readonly hash: string;
  /** Who made it: it ends with this token. */
  readonly tokenId: string;
  readonly sessionId: string;
  /** The session's sandbox of now: it ends with it. */
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
  readonly now: number;
}

/** What a preview's cookie stands for. */
export interface Preview {
  readonly projectId: string;
  readonly sessionId: string;
  readonly sandboxId: string;
  readonly port: number;
  /** Of the token that made its link: whether that lives is the authentication's to say. */
  readonly tokenHash: string;
  /** The cookie's end. */
  readonly expiresAt: number;
}

export class Previews extends Context.Service<
  Previews,
  {
    /** Keeps a link until it is opened or expires. */
    readonly issue: (link: NewPreview) => Stored<void>;
    /**
     * Puts a cookie in the place of a link, once, however many ask at once.
     * @returns false where there is no such link of this session and port (any more): nothing is written.
     */
    readonly open: (request: {
      readonly linkHash: string;
      readonly sessionId: string;
      readonly port: number;
      readonly cookieHash: string;
      /** The cookie's end. */
      readonly expiresAt: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** What the cookie with this hash stands for while it lives; never a link that was not opened. */
    readonly find: (cookieHash: string, now: number) => Stored<Preview | null>;
  }
>()("platform/store/Previews") {}
