/**
 * Programs that wait for a person to sign them in (domain/person/device-login.ts): one of the store's ports, see journal.ts.
 *
 *  D1 A login ends after 10 minutes. It gives one token, also if its program asks twice at once, or on two nodes.
 *  D2 The token is its approver's, reaches what she chose, and is made when the program fetches it. A person who was deactivated
 *     meanwhile gives none, and a browser or token that has ended since it approved gives none.
 *  D3 The first decision counts. A later one, of the same person or of another, finds no login.
 *  D4 After five wrong codes within ten minutes, no code of this person is looked at, on any node.
 *  D5 Only hashes of codes are kept.
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

export interface NewDeviceLogin {
  readonly id: string;
  /** Of the code that the program holds. */
  readonly deviceHash: string;
  /** Of the code that the person types. */
  readonly userHash: string;
  /** What the program calls itself. It may lie. */
  readonly client: string;
  /** Where the request came from, as this node saw it. */
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly now: number;
}

/** A login as its person sees it before she decides. */
export type DeviceLogin = Pick<NewDeviceLogin, "id" | "client" | "address" | "userAgent"> & {
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** Who types a code. */
export interface TypedCode {
  readonly userId: string;
  /** The browser's session or the token with which she does. */
  readonly tokenId: string;
  readonly userHash: string;
  readonly now: number;
}

/** What a program gets when it asks. `unknown`: the code is wrong, used or expired. */
export type ClaimResult =
  | { readonly kind: "waiting" | "too_early" | "denied" | "unknown" }
  | {
      readonly kind: "token";
      readonly accountId: string;
      /** The approver. The token is hers. */
      readonly user: { readonly id: string; readonly name: string };
      readonly client: string;
      readonly projectId: string | null;
      readonly expiresAt: number | null;
    };

/** The reach and the end of the token that an approved program gets. */
export interface DeviceGrant {
  /** Null means all that the person may do. */
  readonly projectId: string | null;
  /** When the token expires. Null if never. */
  readonly expiresAt: number | null;
}

export class DeviceLogins extends Context.Service<
  DeviceLogins,
  {
    readonly begin: (login: NewDeviceLogin) => Stored<void>;
    /** The login with this code that waits for a decision.; then the miss counts (D4). */
    readonly look: (code: TypedCode) => Stored<DeviceLogin | "too_many" | null>;
    /** Decides. A null grant denies. @returns as `look` does. */
    readonly decide: (
      code: TypedCode & { readonly grant: DeviceGrant | null },
    ) => Stored<DeviceLogin | "too_many" | null>;
    /** The program asks. If its login is approved, the token with this hash begins, and the login is over. */
    readonly claim: (request: {
      readonly deviceHash: string;
      readonly token: { readonly id: string; readonly hash: string };
      readonly now: number;
    }) => Stored<ClaimResult>;
  }
>()("platform/store/DeviceLogins") {}
