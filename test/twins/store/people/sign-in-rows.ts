/** Rows of one-time links and of programs that wait to be signed in. */
import type { KnownIdentity } from "../../../../src/store/ports/people/identities.ts";
import type { DeviceGrant, NewDeviceLogin } from "../../../../src/store/ports/people/device-logins.ts";

export interface IdentityRow extends KnownIdentity {
  readonly userId: string;
}

export interface SignInLinkRow {
  readonly hash: string;
  readonly tokenId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface DeviceLoginRow extends Omit<NewDeviceLogin, "now"> {
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly nextPollAt: number;
  readonly pollMs: number;
  /** A null grant denies. */
  readonly decision: {
    readonly userId: string;
    readonly tokenId: string;
    readonly grant: DeviceGrant | null;
  } | null;
}
