/** Rows of identities and of one-time links. */
import type { KnownIdentity } from "../../../../src/store/ports/people/identities.ts";

export interface IdentityRow extends KnownIdentity {
  readonly userId: string;
}

export interface SignInLinkRow {
  readonly hash: string;
  readonly tokenId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}
