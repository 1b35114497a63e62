/** The form of a row of calls.ts. */
import type { TokenKind } from "./cast.ts";

/** What becomes of a request: let in, or refused with this status. */
export type Fate = "in" | 401 | 403 | 404;

/** A request that does what its route is for. */
export interface Call {
  /** Path from the version on; made for each caller, so that a call may destroy the object that it names. */
  readonly target: (kind: TokenKind) => string | Promise<string>;
  readonly body?: (kind: TokenKind) => unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The statuses for a caller with access. */
  readonly answers: readonly number[];
  /** Without a project in the path each token sees what is its own. */
  readonly fates?: Partial<Record<TokenKind, Fate>>;
}

export const WORKERS: ReadonlySet<TokenKind> = new Set([
  "user",
  "projectOwner",
  "member",
  "bound",
  "session",
]);

export const at = (target: string, ...answers: readonly number[]): Call => ({
  target: () => target,
  answers,
});
